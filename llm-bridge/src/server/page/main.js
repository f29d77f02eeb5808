// The chat page.

import { render } from './vendor/preact.js';
import { App } from './components/app.js';
import { html } from './state/html.js';
import { watchChatDocuments } from './state/chatdocuments.js';
import { begin } from './state/chats.js';
import { watch } from './state/inbox.js';
import { connect, followBuild } from './state/server.js';
import { health } from './state/store.js';
import './state/theme.js';
import { load } from './text/markdown.js';

render(html`<${App} />`, document.body);
await Promise.all([connect(), begin()]);
watch();
watchChatDocuments();
if (health.value?.dev) followBuild();
// It is wanted with the first answer.
load().catch(() => {});
// Without a secure connection there is none.
navigator.serviceWorker?.register('worker.js').catch(() => {});
