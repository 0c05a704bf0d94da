/** The terms of the page. Each has a definition in English and Korean, and a page of the docs that explains it.
 *
 * If the data of the page has the address of the documentation site (`docs`), the names of docs pages are links. Without this address,
 * they are shown as file names, because a page that was opened from a file does not know where the docs are. */

import type { Panel } from "./page.svelte";
import type { Language } from "./strings";

export interface Definition {
  term: string;
  text: string;
}

export interface Entry extends Record<Language, Definition> {
  /** A file below docs/, in English. */
  page: string;
}

/** The file below docs/ with a page in this language. Every page that is linked from here exists in Korean. */
export const docsFile = (page: string, language: Language) => (language === "ko" ? page.replace(/\.md$/, ".ko.md") : page);

/** The address of a docs page on the site that `make docs` builds. `page` is a file below docs/. */
export const docsAddress = (site: string, page: string, language: Language) =>
  site + (language === "ko" ? "ko/" : "") + docsFile(page, language).replace(/\.md$/, ".html");

/** The page of the docs that explains what a panel shows. */
export const PANEL_PAGES: Record<Panel, string> = {
  attention: "explain/look-up.md",
  steps: "explain/scaled-dot.md",
  beam: "explain/decoder-and-training.md",
  compare: "explain/index.md",
  run: "tutorial.md",
};

/** The keys from `embed` to `recurrentOutput` are the names of stages in steps.ts (`StageName`). These terms explain the headings of
 * the stages. */
export const GLOSSARY = {
  attention: {
    en: { term: "Attention", text: "How a model decides where to read: for each step it gives every word a weight, and reads the weighted average." },
    ko: { term: "어텐션", text: "모델이 어디를 읽을지 정하는 방법입니다. 단계마다 모든 단어에 가중치를 주고 그 가중 평균을 읽습니다." },
    page: "explain/look-up.md",
  },
  weight: {
    en: { term: "Weight", text: "The share of its attention that a step gives to a word. In nearly all mechanisms the weights of a row sum to 1." },
    ko: { term: "가중치", text: "한 단계의 어텐션 가운데 한 단어에 주는 비율입니다. 거의 모든 메커니즘에서 한 행의 가중치를 모두 더하면 1입니다." },
    page: "explain/look-up.md",
  },
  head: {
    en: { term: "Head", text: "One of several attentions that a layer computes in parallel. Each head has its own projections, so each head may look for something different." },
    ko: { term: "헤드", text: "한 레이어에서 병렬로 계산하는 여러 어텐션 중 하나입니다. 헤드마다 사영 행렬이 달라 저마다 다른 것을 찾을 수 있습니다." },
    page: "explain/multi-head.md",
  },
  token: {
    en: { term: "Token", text: "The unit that a model reads and writes: a word or a part of a word. “·” is the space before a token." },
    ko: { term: "토큰", text: "모델이 읽고 생성하는 단위로, 단어 또는 단어의 일부입니다. “·”는 그 앞의 공백입니다." },
    page: "texts.md",
  },
  embed: {
    en: { term: "Embedding", text: "The vector that represents a token. A second vector, which represents the position, is added to it." },
    ko: { term: "임베딩", text: "토큰을 나타내는 벡터입니다. 여기에 위치를 나타내는 벡터를 더합니다." },
    page: "explain/positions.md",
  },
  state: {
    en: { term: "State", text: "The vector of one position as it enters a layer. Every layer adds to it." },
    ko: { term: "상태", text: "한 위치에서 레이어에 들어가는 벡터입니다. 레이어마다 여기에 값을 더합니다." },
    page: "explain/block.md",
  },
  project: {
    en: { term: "Query, key, value", text: "Three projections. The query is what a step looks for. The key is what a word can be found by. The value is what is read from the word." },
    ko: { term: "쿼리, 키, 밸류", text: "세 가지 사영입니다. 쿼리는 무엇을 찾는지, 키는 무엇으로 찾을 수 있는지, 밸류는 찾은 뒤 무엇을 읽는지를 나타냅니다." },
    page: "explain/look-up.md",
  },
  compare: {
    en: { term: "Score", text: "How well a key fits a query. In scaled dot-product attention it is their scalar product, divided by √d so that it does not grow with the width." },
    ko: { term: "점수", text: "키가 쿼리에 얼마나 맞는지를 나타냅니다. 스케일드 닷 프로덕트 어텐션에서는 두 벡터의 내적이며, 차원이 커져도 함께 커지지 않도록 √d로 나눕니다." },
    page: "explain/scaled-dot.md",
  },
  softmax: {
    en: { term: "Softmax", text: "Turns scores into weights: exponentials, divided by their sum. A score that is larger by 1 gets 2.7 times the weight." },
    ko: { term: "소프트맥스", text: "점수를 가중치로 바꿉니다. 지수 함수를 적용하고 그 합으로 나눕니다. 점수가 1 크면 가중치는 2.7배입니다." },
    page: "explain/scaled-dot.md",
  },
  value: {
    en: { term: "Context", text: "The weighted sum of the values: what a head has read." },
    ko: { term: "컨텍스트", text: "밸류의 가중합으로, 헤드가 읽은 내용입니다." },
    page: "explain/look-up.md",
  },
  output: {
    en: { term: "W_O", text: "The matrix that mixes what all heads of a layer have read." },
    ko: { term: "W_O", text: "한 레이어의 모든 헤드가 읽은 내용을 섞는 행렬입니다." },
    page: "explain/multi-head.md",
  },
  residual: {
    en: { term: "Residual connection", text: "The output of attention is added to the state instead of replacing the state. The norm keeps the sum in range." },
    ko: { term: "잔차 연결", text: "읽은 내용으로 상태를 대체하지 않고 상태에 더합니다. 합의 크기는 정규화로 조절합니다." },
    page: "explain/block.md",
  },
  feedForward: {
    en: { term: "Feed-forward network", text: "Two matrices with an activation function between them. The network computes each position separately, so it reads nothing from other words." },
    ko: { term: "피드포워드 신경망", text: "두 행렬 사이에 활성화 함수가 있는 신경망입니다. 위치마다 따로 계산하며 다른 단어를 읽지 않습니다." },
    page: "explain/block.md",
  },
  predict: {
    en: { term: "Logit", text: "The score of a token of the vocabulary. The softmax of all logits is the probability of each token to be written next." },
    ko: { term: "로짓", text: "어휘에 있는 토큰 하나의 점수입니다. 모든 로짓에 소프트맥스를 적용하면 각 토큰이 다음에 나올 확률이 됩니다." },
    page: "explain/decoder-and-training.md",
  },
  embedding: {
    en: { term: "Embedding", text: "The vector that represents a token." },
    ko: { term: "임베딩", text: "토큰을 나타내는 벡터입니다." },
    page: "explain/sequence-to-sequence.md",
  },
  recurrentState: {
    en: { term: "State", text: "h is what the encoder knows at a source word; s is what the decoder knows so far." },
    ko: { term: "상태", text: "h는 원문의 한 단어에서 인코더가 가진 정보이고, s는 디코더가 지금까지 쌓은 정보입니다." },
    page: "explain/sequence-to-sequence.md",
  },
  recurrentProject: {
    en: { term: "Query, key, value", text: "In a recurrent model the decoder's state s is the query, and the encoder's state h of a word is its key and its value." },
    ko: { term: "쿼리, 키, 밸류", text: "순환 신경망에서는 디코더의 상태 s가 쿼리이고, 각 단어의 인코더 상태 h가 키이자 밸류입니다." },
    page: "explain/sequence-to-sequence.md",
  },
  additive: {
    en: { term: "Additive score", text: "How well a key fits a query: a small network with one hidden layer compares them (Bahdanau et al. 2015)." },
    ko: { term: "덧셈형 점수", text: "키가 쿼리에 얼마나 맞는지를 나타냅니다. 은닉층이 하나인 작은 신경망으로 계산합니다(Bahdanau et al. 2015)." },
    page: "explain/additive.md",
  },
  dot: {
    en: { term: "Score", text: "How well a key fits a query: their scalar product, without scaling (Luong et al. 2015)." },
    ko: { term: "점수", text: "키가 쿼리에 얼마나 맞는지를 나타냅니다. 두 벡터의 내적이며 스케일링은 없습니다(Luong et al. 2015)." },
    page: "explain/luong.md",
  },
  general: {
    en: { term: "Score", text: "How well a key fits a query: the scalar product of the query and W · key, where W is a matrix (Luong et al. 2015)." },
    ko: { term: "점수", text: "키가 쿼리에 얼마나 맞는지를 나타냅니다. 키에 행렬을 곱한 다음 쿼리와 내적한 값입니다(Luong et al. 2015)." },
    page: "explain/luong.md",
  },
  byPosition: {
    en: { term: "Score", text: "The query alone determines how well each position fits. The keys are not used (Luong et al. 2015)." },
    ko: { term: "점수", text: "쿼리만으로 각 위치의 점수를 정합니다. 키는 보지 않습니다(Luong et al. 2015)." },
    page: "explain/luong.md",
  },
  features: {
    en: { term: "Features", text: "Query and key are turned into features. Products of these features replace the softmax." },
    ko: { term: "특징", text: "쿼리와 키를 특징으로 바꾸고, 소프트맥스 대신 그 곱을 씁니다." },
    page: "explain/index.md",
  },
  score: {
    en: { term: "Score", text: "How well a key fits a query." },
    ko: { term: "점수", text: "키가 쿼리에 얼마나 맞는지를 나타냅니다." },
    page: "explain/index.md",
  },
  recurrentOutput: {
    en: { term: "Output", text: "A vector that the decoder computes from its state and from what it has read. The next token is predicted from this vector." },
    ko: { term: "출력", text: "디코더의 상태와 읽은 내용으로 만든 벡터입니다. 이 벡터로 다음 토큰을 예측합니다." },
    page: "explain/sequence-to-sequence.md",
  },
  lens: {
    en: { term: "Logit lens", text: "What a layer would have written if it were the last layer: its state is turned into logits directly." },
    ko: { term: "로짓 렌즈", text: "어떤 레이어가 마지막이라면 무엇을 출력했을지 보여 줍니다. 그 레이어의 상태를 곧바로 로짓으로 바꿉니다." },
    page: "page.md",
  },
  effect: {
    en: { term: "Effect", text: "How the probability that the model gives to its own translation changes if a head is silenced, that is, if all weights of the head are 0." },
    ko: { term: "영향", text: "헤드를 껐을 때(모든 가중치가 0일 때) 모델이 자신의 번역에 매기는 확률이 어떻게 달라지는지를 나타냅니다." },
    page: "page.md",
  },
  measure: {
    en: { term: "Measure", text: "A weight says where a head reads, not whether it matters. Norms, gradients and erasure are other answers to “how much does this word matter?”" },
    ko: { term: "중요도 지표", text: "가중치는 헤드가 어디를 읽는지 알려 줄 뿐, 그것이 중요한지는 알려 주지 않습니다. 노름, 그래디언트, 지우기는 “이 단어가 얼마나 중요한가?”에 대한 또 다른 답입니다." },
    page: "page.md",
  },
  contrast: {
    en: { term: "Contrast", text: "Two translations with the same beginning. At the step where they diverge, the model has chosen between two tokens. The probabilities of these tokens can be compared." },
    ko: { term: "대조", text: "앞부분이 같은 두 번역입니다. 갈라지는 지점에서 모델은 두 토큰 중 하나를 골랐으며, 두 토큰의 확률을 비교할 수 있습니다." },
    page: "page.md",
  },
  pin: {
    en: { term: "Pin", text: "The steps that wrote a word are made to read only one source word. Then the model continues by itself. If the new word has more tokens than the old word, the additional tokens can read all words." },
    ko: { term: "고정", text: "한 단어를 생성한 단계들이 원문의 한 단어만 읽게 합니다. 그다음은 모델이 스스로 이어서 생성합니다. 새 단어의 토큰이 더 많으면 나머지 토큰을 생성할 때는 모든 단어를 읽을 수 있습니다." },
    page: "page.md",
  },
  alignmentHeads: {
    en: { term: "Alignment heads", text: "The target → source heads that show best which words belong together. They are chosen at the end of the training. Word alignments and the lines between the words are read from the average of these heads." },
    ko: { term: "정렬 헤드", text: "어느 단어끼리 대응하는지를 가장 잘 보여 주는 번역문 → 원문 헤드들입니다. 학습이 끝날 때 고르며, 단어 정렬과 단어 사이의 선은 이 헤드들의 평균에서 읽습니다." },
    page: "explain/multi-head.md",
  },
  logProb: {
    en: { term: "Log-probability", text: "The natural logarithm of the probability that the model gives to the whole translation: the sum over its tokens. 0 is certain, −0.7 one in two, −2.3 one in ten." },
    ko: { term: "로그 확률", text: "모델이 번역 전체에 매기는 확률의 자연로그로, 토큰별 로그 확률의 합입니다. 0이면 확실하고, −0.7이면 2분의 1, −2.3이면 10분의 1입니다." },
    page: "explain/decoder-and-training.md",
  },
  perWord: {
    en: { term: "Probability per word", text: "The geometric mean of the words' probabilities. If every word had this probability, the probability of the whole translation would be the same." },
    ko: { term: "단어당 확률", text: "기하 평균입니다. 모든 단어의 확률이 이 값이라면 번역 전체의 확률이 지금과 같아집니다." },
    page: "explain/decoder-and-training.md",
  },
  searchScore: {
    en: { term: "Score", text: "The search ranks finished translations by this score: the log-probability, divided by the number of tokens to the power of the length penalty. The division keeps short translations from having an advantage. The nearer to 0, the better. After a given prefix, only the log-probabilities of the tokens after the prefix are summed, but the number of tokens includes the prefix. So such a score cannot be compared with other scores." },
    ko: { term: "점수", text: "탐색에서 완성된 번역의 순위를 매기는 값입니다. 짧은 번역이 유리해지지 않도록 로그 확률을 토큰 수의 거듭제곱(지수는 길이 페널티)으로 나눕니다. 0에 가까울수록 좋습니다. 접두부가 주어지면 접두부 뒤에 생성한 토큰의 로그 확률만 더하지만 토큰 수에는 접두부도 들어가므로, 이런 점수는 다른 점수와 비교할 수 없습니다." },
    page: "explain/decoder-and-training.md",
  },
  headProfile: {
    en: { term: "Head profile", text: "One head on many sentences: where it reads on average, and what is lost without it." },
    ko: { term: "검증 세트에서 본 헤드", text: "헤드 하나를 여러 문장에서 살펴봅니다. 평균적으로 어디를 읽는지, 그 헤드를 끄면 번역이 얼마나 나빠지는지 보여 줍니다." },
    page: "explain/multi-head.md",
  },
} satisfies Record<string, Entry>;

export type TermName = keyof typeof GLOSSARY;
