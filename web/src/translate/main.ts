import "./style.css";

import { startApiPage } from "./api_page";
import { TranslationPage } from "./page";
import { startSettings } from "./settings";

const starts: Record<string, () => void> = {
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
starts[document.body.dataset.page ?? ""]?.();
