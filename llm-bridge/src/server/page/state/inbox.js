// What the person has to answer, in all chats: counted in the tab's title, and told as a notification where that is permitted.

import { effect } from '../vendor/signals.js';
import * as api from './api.js';
import { givenKey } from './key.js';
import { t } from './language.js';
import { prefer, preference } from './storage.js';
import { chat, running, waiting } from './store.js';

/** How often it is looked for, in milliseconds: a call of this chat says so by itself. */
const AGAIN = 15_000;

/** The key that was refused, if no other was given: nobody is asked for one every few seconds. */
let refused = /** @type {string | null} */ (null);

/** Looks for what waits. */
export async function look() {
  try {
    const [approvals, questions] = await Promise.all([api.approvals(), api.questions()]);
    refused = null;
    const found = [...approvals.map((/** @type {any} */ one) => ({ ...one, kind: 'approval' })), ...questions.map((/** @type {any} */ one) => ({ ...one, kind: 'question' }))];
    if (JSON.stringify(found) !== JSON.stringify(waiting.value)) waiting.value = found;
  } catch (error) {
    // The page says elsewhere that the server cannot be reached.
    refused = error instanceof api.Refused && error.status === 401 ? givenKey() : null;
  }
}

/** Whether notifications are wanted and permitted. */
export const notifies = () => preference('notify', false) && globalThis.Notification?.permission === 'granted';

/**
 * Switches notifications on or off; tells whether they are on.
 * @param {boolean} on
 */
export async function notify(on) {
  const granted = on && 'Notification' in globalThis && (await Notification.requestPermission()) === 'granted';
  prefer('notify', granted);
  return granted;
}

/**
 * Shows a notification, which brings this tab to the front. Phones know only those of the service worker.
 * @param {string} title
 * @param {string} tag
 */
async function tell(title, tag) {
  const about = { tag, icon: 'icon.svg' };
  const registration = await navigator.serviceWorker?.getRegistration();
  if (registration?.active) return registration.showNotification(title, about);
  const shown = new Notification(title, about);
  shown.onclick = () => {
    window.focus();
    shown.close();
  };
}

/** Looks for what waits from now on. */
export function watch() {
  const told = new Set();
  let asked = false;
  look();
  setInterval(() => { if (refused !== givenKey()) look(); }, AGAIN);
  document.addEventListener('visibilitychange', () => { if (!document.hidden) look(); });
  effect(() => {
    const answer = running.value;
    const asks = answer?.parts.some((part) => part.type === 'call' && part.state === 'running' && (part.approval || part.question)) ?? false;
    if (asks !== asked) look();
    asked = asks;
  });
  effect(() => {
    const { length } = waiting.value;
    document.title = [length > 0 ? `(${length}) ${chat.value.title || 'Toolrack'}` : chat.value.title || 'Toolrack'].join('');
    for (const { id, tool, kind, message } of waiting.value) {
      if (told.has(id)) continue;
      told.add(id);
      if (document.hidden && notifies()) tell(kind === 'approval' ? t.callWaits(tool) : t.callAsks(tool, message ?? ''), id).catch(() => {});
    }
  });
}
