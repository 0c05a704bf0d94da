/** The script of the page about the API. It shows the examples of one language at a time, and adds buttons that copy them. */

import { button, copyText } from "./dom";
import { onLanguage, string } from "./settings";
import { local } from "./storage";

const STORAGE_KEY = "jumok-example";

export function startApiPage(): void {
  const examples = [...document.querySelectorAll<HTMLElement>("[data-example]")];
  const names = [...new Set(examples.map((example) => example.dataset.example!))];
  const choose = (name: string) => {
    for (const example of examples) example.hidden = example.dataset.example !== name;
    for (const choice of document.querySelectorAll<HTMLElement>("[data-choose]")) choice.setAttribute("aria-pressed", String(choice.dataset.choose === name));
    local.setItem(STORAGE_KEY, name);
  };
  const chooser = document.getElementById("choose-example");
  chooser?.append(...names.map((name) => button(name, () => choose(name), { "data-choose": name })));
  for (const example of examples) {
    const copy = button(string("copy"), () => {
      void copyText(example.querySelector("code")?.textContent ?? "").then(() => {
        copy.textContent = string("copied");
        setTimeout(() => (copy.textContent = string("copy")), 1500);
      });
    });
    example.prepend(copy);
    onLanguage(() => (copy.textContent = string("copy")));
  }
  const stored = local.getItem(STORAGE_KEY);
  choose(stored && names.includes(stored) ? stored : names[0]);
}
