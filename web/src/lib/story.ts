/** The story, an introduction for the first visit. The page calls it "First steps". It has seven steps and three challenges. In most steps
 * the reader does something. */

import { isSilenced, type Change } from "./changes";
import { SITES, type Explanation, type Site } from "./format";
import type { Language } from "./strings";

export interface StoryStep {
  title: string;
  text: string;
  /** The label of the button that carries out the step for the reader. It is missing if the reader only looks, or must act
   * without help. */
  act?: string;
}

/** The state of the page that decides which steps are done. */
export interface Scene {
  explanation: Explanation | undefined;
  changes: readonly Change[];
  pointedWords: { source: readonly number[]; target: readonly number[] };
  sentence: string;
  /** The sentence that the story began with. */
  example: string;
}

/** The cross-attention head whose silencing lowers the translation's log-probability most, or raises it least, as [layer, head]. Null
 * before effects are measured. */
export function decisiveCrossHead(explanation: Explanation | undefined): [number, number] | null {
  const table = explanation?.statistics.cross?.effect;
  let best: [number, number] | null = null;
  let least = Infinity;
  table?.forEach((row, layer) =>
    row.forEach((effect, head) => {
      if (effect !== null && effect < least) [best, least] = [[layer, head], effect];
    }),
  );
  return best;
}

/** For each head of a site: whether it is silenced. */
function silencedHeads({ changes, explanation }: Scene, site: Site): boolean[] {
  const [layers = 0, heads = 0] = explanation?.attention[site]?.shape ?? [];
  return Array.from({ length: layers * heads }, (_, i) => isSilenced(changes, site, Math.floor(i / heads), i % heads));
}

function isAllCrossAttentionSilenced(scene: Scene): boolean {
  const silenced = silencedHeads(scene, "cross");
  return silenced.length > 0 && silenced.every(Boolean);
}

/** For each step of the story: a function that tells whether the step is done. A step in which the reader only looks is always done. */
export const IS_DONE: ((scene: Scene) => boolean)[] = [
  ({ explanation, sentence, example }) => !!explanation && sentence.trim() === example,
  () => true,
  ({ pointedWords }) => pointedWords.source.length + pointedWords.target.length > 0,
  ({ changes }) => changes.some(({ kind, site }) => kind === "silence" && site === "cross"),
  (scene) => isAllCrossAttentionSilenced(scene) && !!scene.explanation?.before,
  ({ changes }) => changes.some(({ kind }) => kind === "pin"),
  ({ sentence, example }) => sentence.trim() !== "" && sentence.trim() !== example,
];

/** The number of silenced heads. */
export function numSilenced(scene: Scene): number {
  return SITES.flatMap((site) => silencedHeads(scene, site)).filter(Boolean).length;
}

const count = (words: readonly string[], word: string) => words.filter((other) => other === word).length;

/** Whether a word occurs at least twice, and more often than in the translation before the changes. */
function repeatsWord({ explanation }: Scene): boolean {
  if (!explanation?.before) return false;
  const { before, target } = explanation;
  const isRepeated = (word: string) => count(target.words, word) > Math.max(1, count(before.target.words, word));
  return target.words.some((word) => /\p{L}/u.test(word) && isRepeated(word));
}

/** Whether the translation differs from the translation before the changes, and every change silences heads. */
function hasChangedBySilencing({ explanation, changes }: Scene): boolean {
  if (!explanation?.before || !changes.length || changes.some(({ kind }) => kind !== "silence")) return false;
  return explanation.before.target.text !== explanation.target.text;
}

function isShorter({ explanation }: Scene): boolean {
  return !!explanation?.before && explanation.target.words.length < explanation.before.target.words.length;
}

/** The index of the challenge in which silenced heads are counted. How many heads are needed depends on the model and the sentence,
 * so the page shows the smallest number so far. */
export const FEWEST_HEADS_CHALLENGE = 1;
/** For each challenge: a function that tells whether the challenge is solved. It is only called for changes that the reader made after the
 * challenges were shown. */
export const CHALLENGES: ((scene: Scene) => boolean)[] = [repeatsWord, hasChangedBySilencing, isShorter];

interface StoryTexts {
  steps: StoryStep[];
  challenges: string[];
  heading: string;
  of: string;
  next: string;
  back: string;
  skip: string;
  finish: string;
  reopen: string;
  done: string;
  tryThese: string;
  solved: string;
  /** Shown when a challenge was solved by silencing {count} heads. */
  solvedWith: string;
  /** The name of a head, with {layer} and {head}. */
  headName: string;
}

export const STORY: Record<Language, StoryTexts> = {
  en: {
    heading: "First steps",
    of: "of",
    next: "Next",
    back: "Back",
    skip: "Skip",
    finish: "Finish",
    reopen: "First steps",
    done: "Done",
    tryThese: "Or solve one of these:",
    solved: "solved",
    solvedWith: "solved, with {count} silenced",
    headName: "head {head} of layer {layer}",
    steps: [
      { title: "A small sentence", text: "Translate “{sentence}”: the page shows where the model reads while it writes each word.", act: "Translate it" },
      { title: "The word order changes", text: "The upper row is what the model reads. The lower row is what it writes. The lines are its attention: the thicker the line, the more attention. Where the two languages order their words differently, the lines cross." },
      { title: "Point at a word", text: "Point at a word, or tap it. It is highlighted everywhere: in both sentences, in the map and in every head.", act: "Point for me" },
      { title: "Silence the head that matters most", text: "A head is one of several attentions that are computed in parallel. Without {head}, the model finds this translation {likely}. Its small map is outlined among the heads below. Click the map to silence the head. Layers and heads are counted from 0.", act: "Silence it" },
      { title: "Watch it break", text: "If one head is silenced, other heads can often replace it. Now silence all heads that read the sentence: the model then writes without seeing the sentence.", act: "Silence them all" },
      { title: "Pin a word", text: "First undo the changes. Then drag the end of a line to another word of the sentence. The model now reads only this word while it writes the word at the other end of the line, and continues the translation from there.", act: "Pin one for me" },
      { title: "Your turn", text: "Type a sentence of your own, or empty the box to choose an example. Silenced heads stay silenced until you undo." },
    ],
    challenges: ["Make a word appear twice.", "Change the text by silencing as few heads as you can.", "Make the translation shorter."],
  },
  ko: {
    heading: "첫걸음",
    of: "/",
    next: "다음",
    back: "이전",
    skip: "건너뛰기",
    finish: "끝내기",
    reopen: "첫걸음",
    done: "완료",
    tryThese: "다음 문제에도 도전해 보세요.",
    solved: "해결",
    solvedWith: "헤드 {count}개를 꺼서 해결",
    headName: "레이어 {layer}의 헤드 {head}번",
    steps: [
      { title: "짧은 문장 하나", text: "“{sentence}” 문장을 번역해 보세요. 모델이 단어를 하나씩 생성할 때 어디를 읽는지 볼 수 있습니다.", act: "번역하기" },
      { title: "어순이 바뀝니다", text: "위는 모델이 읽는 문장, 아래는 모델이 생성하는 문장입니다. 선은 어텐션이며 굵을수록 강합니다. 두 언어의 어순이 다르면 선이 엇갈립니다." },
      { title: "단어 가리키기", text: "단어에 마우스를 올리거나 단어를 눌러 보세요. 두 문장과 어텐션 맵, 모든 헤드에서 함께 강조됩니다.", act: "대신 가리키기" },
      { title: "가장 중요한 헤드 끄기", text: "헤드는 병렬로 계산되는 여러 어텐션 중 하나입니다. {head}이 없으면 모델이 이 번역에 매기는 확률이 {likely}. 아래 헤드들 가운데 테두리로 표시된 작은 맵을 눌러 꺼 보세요. 레이어와 헤드의 번호는 0부터 시작합니다.", act: "끄기" },
      { title: "번역이 무너집니다", text: "헤드 하나가 꺼지면 다른 헤드가 대신하기도 합니다. 원문을 읽는 헤드를 모두 꺼 보세요. 이제 모델은 원문을 보지 못한 채 번역을 생성합니다.", act: "모두 끄기" },
      { title: "단어 고정하기", text: "‘실행 취소’로 되돌린 다음, 선의 끝을 다른 단어로 끌어 보세요. 그 선에 이어진 번역문 단어를 생성하는 단계들은 이제 새로 이은 원문 단어만 읽고, 나머지는 모델이 이어서 생성합니다.", act: "하나 고정하기" },
      { title: "이제 직접 해 보세요", text: "원하는 문장을 입력하거나, 입력란을 비우고 예문을 고르세요. 꺼진 헤드는 되돌릴 때까지 꺼져 있습니다." },
    ],
    challenges: ["한 단어가 두 번 나오게 만들기", "헤드를 되도록 적게 꺼서 번역을 바꾸기", "번역을 더 짧게 만들기"],
  },
};
