import { beforeEach, expect, it, vi } from "vitest";

import { AddressBar } from "../src/lib/address";

/** The parts of the browser's history that the address bar uses: the addresses of the entries, and the index of the current entry. */
const entries: string[] = [];
let current = 0;

beforeEach(() => {
  entries.splice(0, Infinity, "");
  current = 0;
  vi.stubGlobal("location", {
    protocol: "http:",
    get hash() {
      return entries[current];
    },
  });
  vi.stubGlobal("history", {
    replaceState: (_state: unknown, _title: string, address: string) => void (entries[current] = address),
    pushState: (_state: unknown, _title: string, address: string) => void entries.splice(++current, Infinity, address),
  });
});

it("each panel and sentence becomes an entry of the history, and other changes of the view replace the entry", () => {
  const bar = new AddressBar();
  bar.write("#a", "one");
  bar.write("#a&theme=dark", "one");
  bar.write("#b", "two");
  expect(entries).toEqual(["#a&theme=dark", "#b"]);
});

it("if the view differs from the address after Back, the entry is replaced, and Forward still works", () => {
  const bar = new AddressBar();
  bar.write("#a", "one");
  bar.write("#b", "two");
  bar.write("#b&language=ko", "two");
  current = 0;
  bar.write("#a&language=ko", "one");
  expect([entries, current]).toEqual([["#a&language=ko", "#b&language=ko"], 0]);
  bar.write("#c", "three");
  expect(entries).toEqual(["#a&language=ko", "#c"]);
});
