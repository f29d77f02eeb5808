// A dialog or a form that is loaded when it is first opened: it is not needed for the first paint.

import { useLayoutEffect, useState } from '../vendor/hooks.js';
import { html } from '../state/html.js';
import { t } from '../state/language.js';
import { dialog, failure } from '../state/store.js';

/**
 * @param {() => Promise<(properties: any) => any>} load gives the component
 * @param {(properties: any) => void} close is done where it cannot be loaded, so that another click asks again
 */
export function later(load, close = () => { dialog.value = ''; }) {
  /** @type {((properties: any) => any) | null} */
  let part = null;
  return function Later(/** @type {any} */ properties) {
    const [here, setHere] = useState(part !== null);
    useLayoutEffect(() => {
      if (part) return;
      load().then((loaded) => {
        part = loaded;
        setHere(true);
      }, () => {
        close(properties);
        failure.value = t.unreachable;
      });
    }, []);
    return here && html`<${part} ...${properties} />`;
  };
}
