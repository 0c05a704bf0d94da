import "./style.css";

import { startApiPage } from "./api_page";
import { TranslationPage } from "./page";
import { startSettings } from "./settings";

const startFunctions: Record<string, () => void> = {
  translate: () => {
    const page = new TranslationPage();
    startSettings(() => page.redraw());
    page.start();
  },
  api: () => {
    startSettings(() => undefined);
    startApiPage();
  },
};
startFunctions[document.body.dataset.page ?? ""]?.();
