import { existsSync } from "node:fs";

import { expect, it } from "vitest";

import { docsAddress, docsFile, GLOSSARY, PANEL_PAGES } from "../src/lib/glossary";

it("every term has a definition in both languages", () => {
  for (const { en, ko, page } of Object.values(GLOSSARY)) {
    expect(en.text.length).toBeGreaterThan(20);
    expect(ko.text).toMatch(/[가-힣]/);
    expect(page).toMatch(/^[\w/-]+\.md$/);
  }
});

it.each([...new Set([...Object.values(GLOSSARY).map(({ page }) => page), ...Object.values(PANEL_PAGES)])])("the docs have the page %s in both languages, and the link leads to the page in the reader's language", (page) => {
  const name = page.slice(0, -".md".length);
  expect([docsFile(page, "en"), docsFile(page, "ko")]).toEqual([`${name}.md`, `${name}.ko.md`]);
  for (const language of ["en", "ko"] as const) expect(existsSync(new URL(`../../docs/${docsFile(page, language)}`, import.meta.url)), docsFile(page, language)).toBe(true);
  expect(docsAddress("http://docs/", page, "en")).toBe(`http://docs/${name}.html`);
  expect(docsAddress("http://docs/", page, "ko")).toBe(`http://docs/ko/${name}.ko.html`);
});
