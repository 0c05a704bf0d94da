/** What the interface says when the source is a picture. These texts take the place of those in `strings.ts`. */

import { LANGUAGES, type Language, type Strings } from "./strings";

const en = {
  panels: { ...LANGUAGES.en.panels, translate: "Picture" },
  descriptions: {
    ...LANGUAGES.en.descriptions,
    translate: "The picture and what the model says of it. Each map is bright where the model looks: for each word while it writes it, for a class through all layers.",
    map: "Each row is a patch, or the step that writes a word. The columns are patches by row and column. The stronger the colour, the more its row attends to it.",
    word: "The attention of one word in every head: one row per head, one column per patch.",
    beam: "Which hypotheses the search kept and which it pruned. Each column is a step; the thick line leads to the caption.",
    change: "Change where the model looks, and see how the caption changes. Removing attention shows whether it matters.",
    compare: "Several models on the same picture.",
  },
  site: { cross: "Caption → picture", encoder: "Picture → picture", decoder: "Caption → caption" },
  siteLong: {
    cross: "cross-attention: from the caption to the picture",
    encoder: "the encoder's self-attention: within the picture",
    decoder: "the decoder's masked self-attention: within the caption",
  },
  combination: { ...LANGUAGES.en.combination, "read-out": "Average of the last layer" },
  sentence: "Picture",
  translation: "Caption",
  noSentence: "There is no picture yet: choose one under Picture.",
  targetWord: "Word",
  sourceWord: "Patch",
  sameText: "The caption is the same.",
  otherText: "The caption is different.",
  best: "the caption",
  noSearch: "The caption was given, so there was no search.",
  effectOf: "Silencing these heads changes the log-probability of the caption by",
  notExplanation: "Attention alone does not explain a caption. This number shows whether the attention matters.",
  rankNote: "The change in the caption's log-probability when each head is silenced. Choose a head to silence it.",
  attendedTo: "patch attended to",
};

const ko: typeof en = {
  panels: { ...LANGUAGES.ko.panels, translate: "그림" },
  descriptions: {
    ...LANGUAGES.ko.descriptions,
    translate: "그림과, 그 그림에 대한 모델의 답입니다. 맵에서 밝은 곳이 모델이 보는 곳입니다. 단어의 맵은 그 단어를 쓸 때, 클래스의 맵은 모든 레이어를 거쳐 본 곳입니다.",
    map: "각 행은 패치, 또는 단어를 쓰는 단계입니다. 열은 패치의 행과 열 번호입니다. 칸의 색이 진할수록 그 패치에 더 주목합니다.",
    word: "한 단어의 어텐션을 모든 헤드에서 보여 줍니다. 행은 헤드, 열은 패치입니다.",
    beam: "탐색이 유지한 가설과 가지치기한 가설입니다. 열 하나가 한 단계이고, 굵은 선이 캡션으로 이어집니다.",
    change: "모델이 보는 곳을 바꾸고 캡션이 어떻게 달라지는지 봅니다. 중요한 어텐션은 없애 보면 드러납니다.",
    compare: "같은 그림에 대한 여러 모델의 결과입니다.",
  },
  site: { cross: "캡션 → 그림", encoder: "그림 → 그림", decoder: "캡션 → 캡션" },
  siteLong: {
    cross: "크로스 어텐션: 캡션에서 그림으로",
    encoder: "인코더의 셀프 어텐션: 그림 안에서",
    decoder: "디코더의 마스크드 셀프 어텐션: 캡션 안에서",
  },
  combination: { ...LANGUAGES.ko.combination, "read-out": "마지막 레이어의 평균" },
  sentence: "그림",
  translation: "캡션",
  noSentence: "아직 그림이 없습니다. 그림 탭에서 고르세요.",
  targetWord: "단어",
  sourceWord: "패치",
  sameText: "캡션이 같습니다.",
  otherText: "캡션이 달라졌습니다.",
  best: "캡션",
  noSearch: "캡션이 주어졌으므로 탐색이 없었습니다.",
  effectOf: "이 헤드들을 끄면 캡션의 로그 확률이 다음만큼 바뀝니다:",
  notExplanation: "어텐션만으로 캡션이 설명되지는 않습니다. 이 수치가 그 어텐션이 실제로 중요한지 보여 줍니다.",
  rankNote: "헤드를 하나씩 껐을 때 캡션의 로그 확률이 얼마나 바뀌는지 보여 줍니다. 헤드를 선택하면 꺼집니다.",
  attendedTo: "주목받는 패치",
};

export const PICTURE_LANGUAGES: Record<Language, Strings> = {
  en: { ...LANGUAGES.en, ...en },
  ko: { ...LANGUAGES.ko, ...ko },
};
