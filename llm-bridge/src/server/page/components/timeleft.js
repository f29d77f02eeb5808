// How long a question can still be answered; after that the answer is no.

import { useEffect, useState } from '../vendor/hooks.js';
import { serverNow } from '../state/clock.js';
import { html } from '../state/html.js';
import { t } from '../state/language.js';

/** @import { CallPart } from '../state/types.d.ts' */

/** @param {{ call: Partial<CallPart> }} properties */
export function TimeLeft({ call }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const clock = setInterval(() => tick((count) => count + 1), 1000);
    return () => clearInterval(clock);
  }, []);
  const ms = call.deadline ? call.deadline - Date.now() : Date.parse(call.answer_by ?? '') - serverNow();
  const left = Math.max(0, Math.ceil(ms / 1000));
  if (!Number.isFinite(left)) return null;
  return html`<span class="call-time time-left">${left >= 120 ? t.minutesLeft(Math.ceil(left / 60)) : t.secondsLeft(left)}</span>`;
}
