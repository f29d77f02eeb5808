// The chat page.

import { options, render } from './vendor/preact.js';
import { App } from './components/app.js';
import { html } from './state/html.js';
import { begin } from './state/chats.js';
import { watch } from './state/inbox.js';
import { connect, followBuild } from './state/server.js';
import { health } from './state/store.js';
import './state/theme.js';
import { load } from './text/markdown.js';

// However fast an answer comes, it is rendered once a frame; a page that nobody sees has no frames.
options.debounceRendering = (process) => { if (document.hidden) setTimeout(process); else requestAnimationFrame(process); };
render(html`<${App} />`, document.body);
await Promise.all([connect(), begin()]);
watch();
if (health.value?.dev) followBuild();
// It is wanted with the first answer.
load().catch(() => {});
// Without a secure connection there is none.
navigator.serviceWorker?.register('worker.js').catch(() => {});
