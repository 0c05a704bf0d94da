/** The settings of the server, and the language and theme of the page. */

import { byId } from "./dom";
import { local } from "./storage";

export interface Settings {
  /** The largest number of characters per request. */
  limit: number;
  /** Milliseconds after the last key until a request is sent. */
  delay: number;
  /** The languages that each language can be translated into. */
  targets: Record<string, string[]>;
  /** Names of languages, for a browser that does not know them. */
  names: Record<string, string>;
  /** Models by the name of their pair, `en_ko`, with their tags. */
  models: Record<string, string[]>;
  /** Whether a model's attention page can be opened: not if the server requires keys. */
  attentionPages: boolean;
}

type Strings = Record<string, string>;
const CHOICE = "jumok-page"; // the attention page has the same cookie: "ko.dark.seen"
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
  let text = strings[language][name] ?? name;
  for (const [key, value] of Object.entries(values)) text = text.replace(`{${key}}`, typeof value === "number" ? formatNumber(value) : value);
  return text;
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

/** The name of a tag: `<polite>` → "Polite", or the tag itself. */
export function tagName(tag: string): string {
  return strings[language][`tag-${tag.slice(1, -1).toLowerCase()}`] ?? tag;
}

/** A message of the server in the language of the page, or as it is if it has no translation. */
export function localiseError(message: string, status: number, seconds = 0): string {
  const known = errors[language] ?? {};
  const template = Object.entries(known).find(([part]) => !/^\d+$/.test(part) && message.includes(part))?.[1] ?? known[status] ?? "{message}";
  return template.replace("{message}", message).replace("{seconds}", String(seconds));
}

/** Call a function now and whenever the language changes. */
export function onLanguage(localise: () => void): void {
  listeners.push(localise);
  localise();
}

export function currentTheme(): "light" | "dark" {
  if (theme === "system") return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  return theme === "dark" ? "dark" : "light";
}

/** The parameters of a link to the attention page for language and theme. */
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
  for (const each of document.querySelectorAll<HTMLElement>("[data-string]")) each.textContent = string(each.dataset.string!);
  for (const each of document.querySelectorAll<HTMLElement>("[data-label]")) {
    each.setAttribute("aria-label", string(each.dataset.label!));
    if (each instanceof HTMLTextAreaElement) each.placeholder = string(each.dataset.label!);
    if (each instanceof HTMLButtonElement) each.title = string(each.dataset.label!);
  }
}

function recall(): string[] {
  return [...(readCookie() ?? local.getItem(CHOICE) ?? "").split("."), "", ""];
}

function readCookie(): string | undefined {
  try {
    const cookie = document.cookie.split("; ").find((entry) => entry.startsWith(`${CHOICE}=`));
    return cookie?.slice(CHOICE.length + 1);
  } catch {
    return undefined;
  }
}

function remember(): void {
  const story = recall()[2]; // of the attention page: whether its story was seen
  const text = `${language}.${theme}${story && `.${story}`}`;
  local.setItem(CHOICE, text);
  try {
    document.cookie = `${CHOICE}=${text}; path=/; max-age=${YEAR_SECONDS}; SameSite=Strict`;
  } catch {
    // nothing is remembered
  }
}
