import { beforeEach, expect, it, vi } from "vitest";

import { AddressBar } from "../src/lib/address";

/** A browser's history, as far as the address bar needs it. */
const entries: string[] = [];
let at = 0;

beforeEach(() => {
  entries.splice(0, Infinity, "");
  at = 0;
  vi.stubGlobal("location", {
    protocol: "http:",
    get hash() {
      return entries[at];
    },
  });
  vi.stubGlobal("history", {
    replaceState: (_state: unknown, _title: string, address: string) => void (entries[at] = address),
    pushState: (_state: unknown, _title: string, address: string) => void entries.splice(++at, Infinity, address),
  });
});

it("each panel and sentence is an entry of the history, and other changes of the view are not", () => {
  const bar = new AddressBar();
  bar.write("#a", "one");
  bar.write("#a&theme=dark", "one");
  bar.write("#b", "two");
  expect(entries).toEqual(["#a&theme=dark", "#b"]);
});

it("after Back, an address that does not say what is shown is mended in place, and Forward still leads on", () => {
  const bar = new AddressBar();
  bar.write("#a", "one");
  bar.write("#b", "two");
  bar.write("#b&language=ko", "two");
  at = 0;
  bar.write("#a&language=ko", "one");
  expect([entries, at]).toEqual([["#a&language=ko", "#b&language=ko"], 0]);
  bar.write("#c", "three");
  expect(entries).toEqual(["#a&language=ko", "#c"]);
});
