"""The language of 100 short texts (20 languages × 5) and of texts that fit several languages is detected."""

from __future__ import annotations

import pytest

from jumok.text.language_detection import detect_languages

TEXTS = """
en I am going home after work today.
en Where did you put my keys?
en The museum opens at nine in the morning.
en She has never seen snow before.
en Please send me the report by Friday.
ko 저는 오늘 일이 끝나고 집에 갑니다.
ko 내 열쇠를 어디에 두었니?
ko 박물관은 아침 아홉 시에 문을 엽니다.
ko 그녀는 눈을 한 번도 본 적이 없다.
ko 금요일까지 보고서를 보내 주세요.
de Ich gehe heute nach der Arbeit nach Hause.
de Wo hast du meine Schlüssel hingelegt?
de Das Museum öffnet um neun Uhr morgens.
de Sie hat noch nie Schnee gesehen.
de Bitte schicken Sie mir den Bericht bis Freitag.
fr Je rentre à la maison après le travail.
fr Où as-tu mis mes clés ?
fr Le musée ouvre à neuf heures du matin.
fr Elle n'a jamais vu la neige.
fr Envoyez-moi le rapport avant vendredi, s'il vous plaît.
es Hoy voy a casa después del trabajo.
es ¿Dónde pusiste mis llaves?
es El museo abre a las nueve de la mañana.
es Ella nunca ha visto la nieve.
es Por favor, envíeme el informe antes del viernes.
it Oggi vado a casa dopo il lavoro.
it Dove hai messo le mie chiavi?
it Il museo apre alle nove del mattino.
it Lei non ha mai visto la neve.
it Per favore, mi mandi la relazione entro venerdì.
pt Hoje vou para casa depois do trabalho.
pt Onde você colocou as minhas chaves?
pt O museu abre às nove horas da manhã.
pt Ela nunca viu neve antes.
pt Por favor, envie-me o relatório até sexta-feira.
nl Ik ga vandaag na het werk naar huis.
nl Waar heb je mijn sleutels gelegd?
nl Het museum gaat om negen uur 's ochtends open.
nl Zij heeft nog nooit sneeuw gezien.
nl Stuur mij het verslag alstublieft voor vrijdag.
sv Jag går hem efter jobbet i dag.
sv Var har du lagt mina nycklar?
sv Museet öppnar klockan nio på morgonen.
sv Hon har aldrig sett snö förut.
sv Skicka mig rapporten före fredag, tack.
pl Dzisiaj po pracy idę do domu.
pl Gdzie położyłeś moje klucze?
pl Muzeum otwiera się o dziewiątej rano.
pl Ona nigdy wcześniej nie widziała śniegu.
pl Proszę wysłać mi raport do piątku.
ru Сегодня после работы я иду домой.
ru Куда ты положил мои ключи?
ru Музей открывается в девять часов утра.
ru Она никогда раньше не видела снега.
ru Пожалуйста, пришлите мне отчёт до пятницы.
uk Сьогодні після роботи я йду додому.
uk Куди ти поклав мої ключі?
uk Музей відчиняється о дев'ятій ранку.
uk Вона ніколи раніше не бачила снігу.
uk Будь ласка, надішліть мені звіт до п'ятниці.
ar سأذهب إلى البيت بعد العمل اليوم.
ar أين وضعت مفاتيحي؟
ar يفتح المتحف في الساعة التاسعة صباحا.
ar لم تر الثلج من قبل قط.
ar من فضلك أرسل لي التقرير قبل يوم الجمعة.
he אני הולך הביתה אחרי העבודה היום.
he איפה שמת את המפתחות שלי?
he המוזיאון נפתח בתשע בבוקר.
he היא מעולם לא ראתה שלג.
he בבקשה שלח לי את הדוח עד יום שישי.
hi मैं आज काम के बाद घर जा रहा हूँ।
hi तुमने मेरी चाबियाँ कहाँ रखीं?
hi संग्रहालय सुबह नौ बजे खुलता है।
hi उसने पहले कभी बर्फ नहीं देखी।
hi कृपया शुक्रवार तक मुझे रिपोर्ट भेज दें।
ja 今日は仕事のあとで家に帰ります。
ja 私の鍵をどこに置きましたか。
ja 美術館は朝九時に開きます。
ja 彼女は雪を見たことがありません。
ja 金曜日までに報告書を送ってください。
zh 我今天下班以后回家。
zh 你把我的钥匙放在哪里了？
zh 博物馆早上九点开门。
zh 她以前从来没有见过雪。
zh 请在星期五之前把报告发给我。
tr Bugün işten sonra eve gidiyorum.
tr Anahtarlarımı nereye koydun?
tr Müze sabah saat dokuzda açılıyor.
tr Daha önce hiç kar görmedi.
tr Lütfen raporu cumaya kadar bana gönderin.
vi Hôm nay tôi về nhà sau giờ làm việc.
vi Bạn để chìa khóa của tôi ở đâu?
vi Bảo tàng mở cửa lúc chín giờ sáng.
vi Cô ấy chưa bao giờ nhìn thấy tuyết.
vi Vui lòng gửi báo cáo cho tôi trước thứ Sáu.
fi Menen tänään töiden jälkeen kotiin.
fi Minne laitoit minun avaimeni?
fi Museo avataan yhdeksältä aamulla.
fi Hän ei ole koskaan ennen nähnyt lunta.
fi Lähettäkää minulle raportti perjantaihin mennessä.
"""
SENTENCES = [tuple(line.split(" ", 1)) for line in TEXTS.strip().splitlines()]
# The languages of the loaded models, among which the language of a text is detected.
LOADED = [
    ["en", "ko"], ["de", "fr"], ["es", "ru"], ["en", "de", "ko", "zh"], ["pt", "nl"],
    ["ar", "he"], ["tr", "vi", "fi"], ["ja", "zh"], ["sv", "pl", "uk"], ["it", "es", "pt"],
]  # fmt: skip


@pytest.mark.parametrize("loaded", LOADED, ids="-".join)
def test_only_texts_in_loaded_languages_are_detected(loaded: list[str]) -> None:
    assert len(SENTENCES) == 100
    wrong = []
    for language, text in SENTENCES:
        best, confidence = detect_languages(text, loaded)[0]
        detected = best if confidence else None
        if detected != (language if language in loaded else None):
            wrong.append((language, text, best, confidence))
    assert wrong == []


@pytest.mark.parametrize("text", ["Apple", "Hello", "I", "go", "OK", "I go home."])
def test_a_short_text_of_several_possible_languages_is_detected_as_the_loaded_one(text: str) -> None:
    assert detect_languages(text, ["ko", "en"])[0][0] == "en"


def test_the_confidence_is_lower_if_another_language_is_more_probable() -> None:
    [(_, short), _] = detect_languages("Hello", ["en", "ko"])
    [(_, long), _] = detect_languages("The museum opens at nine in the morning.", ["en", "ko"])
    assert 0 < short < 60 < long <= 100


@pytest.mark.parametrize("text", ["", "42", "12:30", "…!?", "😀"])
def test_a_text_without_letters_has_no_detected_language(text: str) -> None:
    assert detect_languages(text, ["en", "ko"]) == [("en", 0.0), ("ko", 0.0)]


def test_a_language_that_the_detector_does_not_know_is_never_detected() -> None:
    assert detect_languages("I go home.", ["jje"]) == [("jje", 0.0)]  # Jejueo
