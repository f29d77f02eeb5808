// What came of signing in, or of connecting an account: the server has written it in English.

import { language, t } from './state/language.js';
import './state/theme.js';

const main = /** @type {HTMLElement} */ (document.querySelector('main'));
const { code = '', about = '' } = main.dataset;
const [title, text] = ['h1', 'p'].map((name) => /** @type {HTMLElement} */ (main.querySelector(name)));
const said = t.outcomesElsewhere[code]?.(about);
if (title && text && said) {
  [title.textContent, text.textContent] = said;
  main.lang = language;
}
const again = main.querySelector('a');
if (again) {
  again.textContent = t.startAgain;
  again.lang = language;
}
document.title = title?.textContent ?? '';
