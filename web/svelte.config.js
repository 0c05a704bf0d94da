import { vitePreprocess } from "@sveltejs/vite-plugin-svelte";

export default {
  preprocess: vitePreprocess(),
  // The names of scoped classes occur hundreds of times in the page, which is part of every file that is saved: “s-” instead of “svelte-” keeps it smaller.
  compilerOptions: { cssHash: ({ hash, css }) => `s-${hash(css)}` },
};
