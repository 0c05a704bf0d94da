/** Example sentences for each source language. */
const EXAMPLES: Record<string, string[]> = {
  en: ["I go home.", "The student reads a book.", "If it rains tomorrow, I will stay at home.", "The teacher did not drink coffee at the library yesterday.", "My friend bought three apples.", "Where does the doctor live?"],
  ko: ["나는 집에 간다.", "학생은 책을 읽는다.", "내일 비가 오면 나는 집에 있을 것이다.", "선생님은 어제 도서관에서 커피를 마시지 않았다.", "내 친구는 사과 세 개를 샀다.", "의사는 어디에 살아요?"],
  fr: ["Je vais à la maison.", "L'étudiant lit un livre.", "S'il pleut demain, je resterai à la maison.", "Mon ami a acheté trois pommes.", "Où habite le médecin ?", "Elle ne boit pas de café."],
  de: ["Ich gehe nach Hause.", "Der Student liest ein Buch.", "Wenn es morgen regnet, bleibe ich zu Hause.", "Mein Freund hat drei Äpfel gekauft.", "Wo wohnt der Arzt?", "Sie trinkt keinen Kaffee."],
  es: ["Voy a casa.", "El estudiante lee un libro.", "Si llueve mañana, me quedaré en casa.", "Mi amigo compró tres manzanas.", "¿Dónde vive el médico?", "Ella no bebe café."],
};

export function examplesIn(language: string | undefined): string[] {
  return EXAMPLES[(language ?? "").split("-")[0]] ?? [];
}
