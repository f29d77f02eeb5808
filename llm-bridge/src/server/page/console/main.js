// The console of admins.

import { render } from '../vendor/preact.js';
import { html } from '../state/html.js';
import '../state/theme.js';
import { Console } from './parts/frame.js';
import { c, enter } from './state.js';

document.title = `${c.console} · Toolrack`;
render(html`<${Console} />`, document.body);
await enter();
