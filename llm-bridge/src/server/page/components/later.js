// A dialog that is loaded when it is first opened: it is not needed for the first paint.

import { useEffect, useState } from '../vendor/hooks.js';
import { html } from '../state/html.js';
import { t } from '../state/language.js';
import { dialog, failure } from '../state/store.js';

/** @param {() => Promise<() => any>} load gives the component */
export function later(load) {
  /** @type {(() => any) | null} */
  let part = null;
  return function Later() {
    const [here, setHere] = useState(part !== null);
    useEffect(() => {
      if (part) return;
      load().then((loaded) => {
        part = loaded;
        setHere(true);
      }, () => {
        // Another click asks again.
        dialog.value = '';
        failure.value = t.unreachable;
      });
    }, []);
    return here && html`<${part} />`;
  };
}
