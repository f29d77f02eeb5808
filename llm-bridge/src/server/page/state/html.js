// Templates without a build step: `html` makes elements of Preact.

import { h } from '../vendor/preact.js';
import htm from '../vendor/htm.js';

/** @type {(strings: TemplateStringsArray, ...values: any[]) => any} */
export const html = htm.bind(h);
