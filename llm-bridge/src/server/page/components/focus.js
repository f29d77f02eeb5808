// Where the focus goes when what had it comes or goes, and the key that closes things.

import { useLayoutEffect, useRef } from '../vendor/hooks.js';

/** A field or button that has the focus as soon as it is there. */
export function useFocus() {
  const element = useRef(/** @type {any} */ (null));
  useLayoutEffect(() => element.current?.focus(), []);
  return element;
}

/**
 * Whether something is written or chosen there that is no message.
 * @param {EventTarget | null} target
 */
export const isElsewhere = (target) => target instanceof Element && target.matches('input, select, textarea:not(#question)');

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
 * What is pressed in a card is switched off, and gone when it is answered: the focus waits at the card. Gives it back where that has failed.
 * @returns {() => void}
 */
export function toCard() {
  const pressed = /** @type {HTMLElement | null} */ (document.activeElement);
  const card = pressed?.closest('.call');
  /** @type {HTMLElement | null | undefined} */ (card?.querySelector(':scope > summary') ?? card)?.focus({ preventScroll: true });
  return () => requestAnimationFrame(() => pressed?.focus());
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
