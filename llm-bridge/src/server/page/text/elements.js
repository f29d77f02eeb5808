// Elements around what Markdown has become.

/**
 * What scrolls must be reachable by keyboard.
 * @param {HTMLElement} node
 * @param {string} label
 */
export function letScroll(node, label) {
  node.tabIndex = 0;
  node.setAttribute('role', 'group');
  node.setAttribute('aria-label', label);
}

/**
 * An element of a class.
 * @param {string} tag
 * @param {string} kind
 */
export function element(tag, kind) {
  const node = document.createElement(tag);
  node.className = kind;
  return node;
}

/**
 * A quiet button.
 * @param {string} label
 * @param {() => void} onClick
 */
export function button(label, onClick) {
  const node = /** @type {HTMLButtonElement} */ (element('button', 'quiet'));
  node.type = 'button';
  node.textContent = label;
  node.addEventListener('click', onClick);
  return node;
}
