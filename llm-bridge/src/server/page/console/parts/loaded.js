// What a section asks the server for, and what it changes there.

import { useEffect, useLayoutEffect, useRef, useState } from '../../vendor/hooks.js';
import { Refused } from '../../state/api.js';
import { html } from '../../state/html.js';
import { givenKey } from '../../state/key.js';
import { t } from '../../state/language.js';
import { said } from '../../state/store.js';
import { prose } from '../../text/nodes.js';
import { signal } from '../../vendor/signals.js';
import { c } from '../state.js';

/** After so long there is no answer to come, in milliseconds: a server that is gone without a word would keep a section waiting for good. */
const LOST = 60_000;

/** How many answers are awaited. */
export const awaited = signal(0);

/**
 * Waits for an answer, while which the section says that it is busy.
 * @template T
 * @param {Promise<T>} answer
 */
export async function awaiting(answer) {
  awaited.value += 1;
  try {
    return await answer;
  } finally {
    awaited.value -= 1;
  }
}

/**
 * An answer, or that there is none.
 * @template T
 * @param {Promise<T>} answer
 * @param {string} lost
 * @returns {Promise<T>}
 */
function inTime(answer, lost = t.unreachable) {
  return new Promise((resolve, reject) => {
    const clock = setTimeout(() => reject(new Error(lost)), LOST);
    answer.then(resolve, reject).finally(() => clearTimeout(clock));
  });
}

/**
 * Asks once, again when `about` changes, and when it is told to: `again` after a change, `look` every few seconds. One request is under way at
 * a time: where each began before the last was answered, a slow server's answers would never be seen.
 * @template T
 * @param {() => Promise<T>} ask
 * @param {unknown[]} about
 */
export function useLoaded(ask, about = []) {
  const [value, setValue] = useState(/** @type {T | null} */ (null));
  const [fault, setFault] = useState('');
  const asking = useRef({ look: () => {}, again: () => {} });
  // Before it is painted: what is shown without its data says that it is busy.
  useLayoutEffect(() => {
    let gone = false;
    let busy = false;
    // What is under way may have been read before the change.
    let anew = false;
    // Who has given no key is asked for one when that is wanted, not every few seconds.
    let refused = /** @type {string | null} */ (null);
    const look = async () => {
      if (busy || refused === givenKey()) return;
      busy = true;
      try {
        const answer = await awaiting(inTime(ask()));
        if (!gone) setValue(answer);
        if (!gone) setFault('');
      } catch (error) {
        if (error instanceof Refused && error.status === 401) refused = givenKey();
        // What was asked for is not in the answer.
        const isOther = error instanceof TypeError || error instanceof SyntaxError;
        if (!gone) setFault(isOther ? c.notShown(error.message) : /** @type {Error} */ (error).message);
      }
      busy = false;
      if (!anew || gone) return;
      anew = false;
      look();
    };
    const again = () => {
      refused = null;
      anew = busy;
      look();
    };
    asking.current = { look, again };
    look();
    return () => { gone = true; };
  }, about);
  return { value, fault, again: () => asking.current.again(), look: () => asking.current.look() };
}

/**
 * Looks every few seconds.
 * @param {number} milliseconds 0 for never
 * @param {() => void} look
 */
export function useEvery(milliseconds, look) {
  useEffect(() => {
    if (milliseconds === 0) return undefined;
    const clock = setInterval(look, milliseconds);
    return () => clearInterval(clock);
  }, [milliseconds]);
}

/**
 * Makes a change; says what has come of it.
 * @param {() => void} onEnd looks again, also where it failed: somebody else may have changed the same
 * @param {boolean} takesLong whether its answer is waited for however long that takes
 */
export function useChange(onEnd, takesLong = false) {
  const [fault, setFault] = useState('');
  const [busy, setBusy] = useState(false);
  const change = async (/** @type {() => Promise<unknown>} */ make, /** @type {string} */ done) => {
    setBusy(true);
    try {
      const made = make();
      await (takesLong ? made : inTime(made, c.perhapsDone));
      setFault('');
      said.value = done;
      return true;
    } catch (error) {
      setFault(/** @type {Error} */ (error).message);
      return false;
    } finally {
      setBusy(false);
      onEnd();
    }
  };
  return { fault, busy, change };
}

/** @param {{ text: string, onAgain?: () => void }} properties */
export function Fault({ text, onAgain }) {
  if (!text) return null;
  return html`<p class="fault" role="alert">${prose(text)} ${onAgain && html`<button type="button" onClick=${onAgain}>${t.tryAgain}</button>`}</p>`;
}
