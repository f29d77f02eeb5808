// Where the focus goes when what had it comes or goes, and the key that closes things.

import { useLayoutEffect, useRef } from '../vendor/hooks.js';

/** A field or button that has the focus as soon as it is there. */
export function useFocus() {
  const element = useRef(/** @type {any} */ (null));
  useLayoutEffect(() => element.current?.focus(), []);
  return element;
}

/**
 * What gets the focus when something is closed that had it, and took it along.
 * @param {boolean} open
 */
export function useFocusBack(open) {
  const element = useRef(/** @type {any} */ (null));
  const before = useRef(open);
  useLayoutEffect(() => {
    const isLost = document.activeElement === null || document.activeElement === document.body;
    if (before.current && !open && isLost) element.current?.focus();
    before.current = open;
  }, [open]);
  return element;
}

/**
 * Escape closes this: neither the dialog around it, nor the turn that runs.
 * @param {() => void} close
 */
export const onEscape = (close) => (/** @type {KeyboardEvent} */ event) => {
  if (event.key !== 'Escape' || event.isComposing) return;
  event.stopPropagation();
  event.preventDefault();
  close();
};
