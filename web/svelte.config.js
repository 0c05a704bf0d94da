import { vitePreprocess } from "@sveltejs/vite-plugin-svelte";

export default {
  preprocess: vitePreprocess(),
  // The names of scoped classes occur 800 times in the page, and every saved file contains the page. Therefore the names are short. With 50
  // components and four characters of the hash, two components have the same name with a probability below 0.1 %.
  compilerOptions: { cssHash: ({ hash, css }) => `s-${hash(css).slice(-4)}` },
};
