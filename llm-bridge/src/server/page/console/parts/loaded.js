// What a section asks the server for, and what it changes there.

import { useEffect, useState } from '../../vendor/hooks.js';
import { html } from '../../state/html.js';
import { t } from '../../state/language.js';
import { said } from '../../state/store.js';
import { signal } from '../../vendor/signals.js';

/** How many answers are awaited. */
export const awaited = signal(0);

/**
 * Asks once, and again when it is told to or when `about` changes.
 * @template T
 * @param {() => Promise<T>} ask
 * @param {unknown[]} about
 */
export function useLoaded(ask, about = []) {
  const [value, setValue] = useState(/** @type {T | null} */ (null));
  const [fault, setFault] = useState('');
  const [times, setTimes] = useState(0);
  useEffect(() => {
    let gone = false;
    awaited.value += 1;
    ask().finally(() => { awaited.value -= 1; }).then((answer) => {
      if (gone) return;
      setValue(answer);
      setFault('');
    }, (error) => { if (!gone) setFault(error.message); });
    return () => { gone = true; };
  }, [times, ...about]);
  return { value, fault, again: () => setTimes((count) => count + 1) };
}

/**
 * Makes a change; says what has come of it.
 * @param {() => void} onDone
 */
export function useChange(onDone) {
  const [fault, setFault] = useState('');
  const [busy, setBusy] = useState(false);
  const change = async (/** @type {() => Promise<unknown>} */ make, /** @type {string} */ done) => {
    setBusy(true);
    try {
      await make();
      setFault('');
      said.value = done;
      onDone();
      return true;
    } catch (error) {
      setFault(/** @type {Error} */ (error).message);
      return false;
    } finally {
      setBusy(false);
    }
  };
  return { fault, busy, change };
}

/** @param {{ text: string, onAgain?: () => void }} properties */
export function Fault({ text, onAgain }) {
  if (!text) return null;
  return html`<p class="fault" role="alert">${text} ${onAgain && html`<button type="button" onClick=${onAgain}>${t.tryAgain}</button>`}</p>`;
}
