/** Finds and makes elements, copies text, and computes where arrow keys move the focus in lists. No text is parsed as HTML. */

export function byId<Type extends HTMLElement = HTMLElement>(id: string): Type {
  const element = document.getElementById(id);
  if (!element) throw new Error(`The page has no element #${id}.`);
  return element as Type;
}

type Child = Node | string;

export function make<Name extends keyof HTMLElementTagNameMap>(name: Name, attributes: Record<string, string> = {}, ...children: Child[]): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) element.setAttribute(attribute, value);
  element.append(...children);
  return element;
}

/** Make a button that does not submit its form. */
export function button(label: string, onClick: () => void, attributes: Record<string, string> = {}): HTMLButtonElement {
  const element = make("button", { type: "button", ...attributes }, label);
  element.addEventListener("click", onClick);
  return element;
}

/** The index of the list element that gets the focus after an arrow key. `step` is 1 for the next element and −1 for the previous element.
 * After the last element comes the first. If no element of the list has the focus (`current` is −1), the first or the last element gets
 * the focus. */
export function indexAfterArrowKey(current: number, step: number, count: number): number {
  if (current < 0) return step > 0 ? 0 : count - 1;
  return (current + step + count) % count;
}

/** Copy a text to the clipboard. If a page of another machine was loaded without TLS, browsers do not allow `navigator.clipboard`, but the
 * page can still copy a selection. */
export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const box = make("textarea", { class: "hidden", "aria-hidden": "true" });
    box.value = text;
    document.body.append(box);
    box.select();
    document.execCommand("copy");
    box.remove();
  }
}
