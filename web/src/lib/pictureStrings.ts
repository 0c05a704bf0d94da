/** Texts of the interface for models that read pictures. They replace the texts of the same name in `strings.ts`. */

import { LANGUAGES, type Language, type Strings } from "./strings";

const en = {
  descriptions: {
    ...LANGUAGES.en.descriptions,
    attention: "The picture and the model's caption or class. Each map is bright where the model looks. The map of a word shows where it looks while it writes the word. The map of a class shows where it looks through all layers.",
    word: "The attention of one word in every head: one row per head, one column per patch.",
    beam: "Which hypotheses the search kept and which it pruned. Each column is a step; the thick line leads to the caption.",
    compare: "Several models on the same picture.",
  },
  site: { cross: "Caption → picture", encoder: "Picture → picture", decoder: "Caption → caption" },
  siteLong: {
    cross: "cross-attention: from the caption to the picture",
    encoder: "the encoder's self-attention: within the picture",
    decoder: "the decoder's masked self-attention: within the caption",
  },
  combination: { ...LANGUAGES.en.combination, "read-out": "Average of the last layer" },
  axes: {
    cross: "Rows: the words that are written. Columns: the patches that the model looks at, by row and column.",
    encoder: "Rows: the patches. Columns: the patches that they read, by row and column.",
    decoder: "Rows: the words that are written. Columns: the words that were written before.",
  },
  axesOfLines: {
    cross: "Left: the patches that the model looks at, by row and column. Right: the words that are written.",
    encoder: "Left: the patches that are read, by row and column. Right: the patches that read them.",
    decoder: "Left: the words that were written before. Right: the words that are written.",
  },
  withoutHeads: "Without {heads}, the model would find this caption {likely}.",
  sameNow: LANGUAGES.en.sameNow,
  oldNow: "The model finds the old caption {likely}.",
  sentence: "Picture",
  translation: "Caption",
  noInput: "There is no picture yet: choose one above.",
  sameText: "The caption stays the same.",
  otherText: "The caption changes.",
  best: "the caption",
  noSearch: "The caption was given, so there was no search.",
  attendedTo: "patch attended to",
};

const ko: typeof en = {
  descriptions: {
    ...LANGUAGES.ko.descriptions,
    attention: "이미지와 그에 대한 모델의 답입니다. 맵의 밝은 부분이 모델이 보는 곳입니다. 단어의 맵은 그 단어를 생성할 때 본 곳을, 클래스의 맵은 모든 레이어를 거쳐 본 곳을 보여 줍니다.",
    word: "한 단어의 어텐션을 모든 헤드에서 보여 줍니다. 행은 헤드, 열은 패치입니다.",
    beam: "탐색에서 유지한 가설과 가지치기한 가설입니다. 열 하나가 한 단계이고, 굵은 선이 캡션으로 이어집니다.",
    compare: "같은 이미지에 대한 여러 모델의 결과입니다.",
  },
  site: { cross: "캡션 → 이미지", encoder: "이미지 → 이미지", decoder: "캡션 → 캡션" },
  siteLong: {
    cross: "교차 어텐션: 캡션에서 이미지로",
    encoder: "인코더의 셀프 어텐션: 이미지 안에서",
    decoder: "디코더의 마스크드 셀프 어텐션: 캡션 안에서",
  },
  combination: { ...LANGUAGES.ko.combination, "read-out": "마지막 레이어의 평균" },
  axes: {
    cross: "행은 생성하는 단어, 열은 그때 보는 패치(행, 열 번호)입니다.",
    encoder: "행은 패치, 열은 그 패치가 읽는 패치(행, 열 번호)입니다.",
    decoder: "행은 생성하는 단어, 열은 그보다 앞서 생성한 단어입니다.",
  },
  axesOfLines: {
    cross: "왼쪽은 보는 패치(행, 열 번호), 오른쪽은 그때 생성하는 단어입니다.",
    encoder: "왼쪽은 읽히는 패치(행, 열 번호), 오른쪽은 그 패치를 읽는 패치입니다.",
    decoder: "왼쪽은 앞서 생성한 단어, 오른쪽은 그 단어를 읽고 생성하는 단어입니다.",
  },
  withoutHeads: "{heads} 끄면 모델이 이 캡션에 매기는 확률이 {likely}.",
  sameNow: "모델이 이 캡션에 매기는 확률은 {likely}.",
  oldNow: "모델이 원래 캡션에 매기는 확률은 {likely}.",
  sentence: "이미지",
  translation: "캡션",
  noInput: "아직 이미지가 없습니다. 위에서 고르세요.",
  sameText: "캡션은 그대로입니다.",
  otherText: "캡션이 바뀝니다.",
  best: "캡션",
  noSearch: "캡션이 주어졌으므로 탐색하지 않았습니다.",
  attendedTo: "주목받는 패치",
};

export const PICTURE_LANGUAGES: Record<Language, Strings> = {
  en: { ...LANGUAGES.en, ...en },
  ko: { ...LANGUAGES.ko, ...ko },
};
