// The page on which a user lets the server into an account elsewhere.

import { t, told } from './state/language.js';
import { recall } from './state/storage.js';
import './state/theme.js';

const server = decodeURIComponent(location.pathname.split('/').pop() ?? '');

/** @param {string} id */
function element(id) {
  return /** @type {HTMLElement} */ (document.getElementById(id));
}

/** The key that is written here, or that the chat in this tab has. */
function key() {
  const written = /** @type {HTMLInputElement} */ (element('key')).value.trim();
  return written || recall('key', '');
}

async function authorize() {
  const given = key();
  const answer = await fetch(`../api/connections/${encodeURIComponent(server)}`, {
    method: 'POST',
    headers: given ? { authorization: `Bearer ${given}` } : {},
  });
  const body = await answer.json().catch(() => ({}));
  if (answer.ok && /^https?:/.test(body.location)) {
    location.assign(body.location);
  } else if (answer.status === 401) {
    await identify();
  } else {
    element('fault').textContent = body.error?.message ? told(body.error) : t.serverAnswered(String(answer.status));
  }
}

/** Asks who it is: by signing in, or with a key. */
async function identify() {
  const health = await fetch('../healthz').then((answer) => answer.json()).catch(() => ({}));
  element('sign-in').hidden = !health.sign_in;
  element('ask').hidden = false;
  element('key').focus();
}

for (const [id, text] of Object.entries({
  title: t.connectTitle, asks: t.connectAsks, server, then: t.connectThen, 'key-label': t.connectKey, 'sign-in-link': t.connectSignIn, go: t.connectGo,
})) element(id).textContent = text;
document.title = t.connectTitle;
/** @type {HTMLElement} */ (document.querySelector('main')).hidden = false;
element('sign-in-link').setAttribute('href', `../sign-in?to=${encodeURIComponent(`/connect/${encodeURIComponent(server)}`)}`);
element('form').addEventListener('submit', (event) => {
  event.preventDefault();
  element('fault').textContent = '';
  authorize().catch((error) => { element('fault').textContent = error.message; });
});
