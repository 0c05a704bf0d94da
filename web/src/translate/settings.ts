/** The settings of the server, and the language and theme of the page. */

import { fill } from "../lib/numbers";
import { byId } from "./dom";
import { local } from "./storage";

export interface Settings {
  /** The largest number of characters per request. */
  limit: number;
  /** Milliseconds after the last key until a request is sent. */
  typingPause: number;
  /** The languages that each language can be translated into. */
  targets: Record<string, string[]>;
  /** Names of languages, in case the browser does not know them. */
  names: Record<string, string>;
  /** The tags of each model, by the name of the model's language pair, for example `en_ko`. */
  tagsByPair: Record<string, string[]>;
  /** Whether the attention page of a model can be opened. False if the server requires API keys. */
  attentionPages: boolean;
}

type Strings = Record<string, string>;
/** The name of the cookie for language and theme. The attention page uses the same cookie. Its value is, for example, "ko.dark.seen". */
const COOKIE_NAME = "jumok-page";
const THEMES = ["system", "light", "dark"];
const YEAR_SECONDS = 365 * 24 * 3600;

export const settings = JSON.parse(document.body.dataset.settings ?? "{}") as Settings;
const strings = JSON.parse(document.body.dataset.strings ?? "{}") as Record<string, Strings>;
const errors = JSON.parse(document.body.dataset.errors ?? "{}") as Record<string, Strings>;
const [storedLanguage, storedTheme] = recall();
let language = storedLanguage in strings ? storedLanguage : document.documentElement.lang;
let theme = THEMES.includes(storedTheme) ? storedTheme : "system";
const listeners: (() => void)[] = [];

export function string(name: string, values: Record<string, string | number> = {}): string {
  const texts = Object.entries(values).map(([key, value]) => [key, typeof value === "number" ? formatNumber(value) : value]);
  return fill(strings[language][name] ?? name, Object.fromEntries(texts));
}

export function formatNumber(value: number): string {
  return value.toLocaleString(language);
}

export function languageName(code: string): string {
  try {
    return new Intl.DisplayNames([language], { type: "language", fallback: "none" }).of(code) ?? settings.names[code] ?? code;
  } catch {
    return settings.names[code] ?? code;
  }
}

/** The name of a tag in the language of the page, for example "Polite" for `<polite>`. Unknown tags are returned unchanged. */
export function tagName(tag: string): string {
  return strings[language][`tag-${tag.slice(1, -1).toLowerCase()}`] ?? tag;
}

/** A message of the server in the language of the page. If there is no translation, the message itself.
 *
 * The keys of the translations are parts of messages, or HTTP status codes. */
export function localiseError(message: string, status: number, seconds = 0): string {
  const translations = errors[language] ?? {};
  const isStatus = (key: string) => /^\d+$/.test(key);
  const byMessage = Object.entries(translations).find(([key]) => !isStatus(key) && message.includes(key))?.[1];
  const template = byMessage ?? translations[status] ?? "{message}";
  return fill(template, { message, seconds });
}

/** Call a function now, and again whenever the language changes. */
export function onLanguage(localise: () => void): void {
  listeners.push(localise);
  localise();
}

export function currentTheme(): "light" | "dark" {
  if (theme === "system") return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  return theme === "dark" ? "dark" : "light";
}

/** Language and theme as parameters of a link to the attention page. */
export function preferences(): Record<string, string> {
  return { language, ...(theme === "system" ? {} : { theme }) };
}

/** Show the switches for language and theme, and handle them. */
export function startSettings(onTheme: () => void): void {
  const [languages, themes] = [byId<HTMLSelectElement>("language"), byId<HTMLSelectElement>("theme")];
  byId("settings").hidden = false;
  languages.value = language;
  themes.value = theme;
  languages.addEventListener("change", () => {
    language = languages.value;
    remember();
    for (const localise of listeners) localise();
  });
  themes.addEventListener("change", () => {
    theme = themes.value;
    remember();
    applyTheme();
    onTheme();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", onTheme);
  applyTheme();
  onLanguage(localisePage);
}

function applyTheme(): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

function localisePage(): void {
  document.documentElement.lang = language;
  for (const element of document.querySelectorAll<HTMLElement>("[data-string]")) element.textContent = string(element.dataset.string!);
  for (const element of document.querySelectorAll<HTMLElement>("[data-label]")) {
    const label = string(element.dataset.label!);
    element.setAttribute("aria-label", label);
    if (element instanceof HTMLTextAreaElement) element.placeholder = label;
    if (element instanceof HTMLButtonElement) element.title = label;
  }
}

/** The stored language, theme and state of the story. Values that are not stored are empty. */
function recall(): string[] {
  return [...(readCookie() ?? local.getItem(COOKIE_NAME) ?? "").split("."), "", ""];
}

function readCookie(): string | undefined {
  try {
    const cookie = document.cookie.split("; ").find((entry) => entry.startsWith(`${COOKIE_NAME}=`));
    return cookie?.slice(COOKIE_NAME.length + 1);
  } catch {
    return undefined;
  }
}

function remember(): void {
  const story = recall()[2]; // written by the attention page: whether its story was seen
  const text = `${language}.${theme}${story && `.${story}`}`;
  local.setItem(COOKIE_NAME, text);
  try {
    document.cookie = `${COOKIE_NAME}=${text}; path=/; max-age=${YEAR_SECONDS}; SameSite=Strict`;
  } catch {
    // Without cookies, only the local storage remembers the choice.
  }
}
