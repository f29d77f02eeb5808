// Keeps the end of a growing log in view, until the reader scrolls up.

const NEAR = 48;

/**
 * Follows `content` inside `scroller`; `button` leads back to the end.
 * @param {HTMLElement} scroller
 * @param {HTMLElement} content
 * @param {HTMLElement} button
 */
export function follow(scroller, content, button) {
  let following = true;
  let top = 0;
  const distance = () => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
  const toEnd = () => {
    following = true;
    scroller.scrollTop = scroller.scrollHeight;
  };
  scroller.addEventListener('scroll', () => {
    // Being far from the end is not enough: the log may have grown since the page itself scrolled. Only a move upward is the reader's.
    if (distance() < NEAR) following = true;
    else if (scroller.scrollTop < top) following = false;
    top = scroller.scrollTop;
    button.hidden = following;
  }, { passive: true });
  // What the reader opens stays where it is.
  content.addEventListener('click', (event) => {
    if (/** @type {Element} */ (event.target).closest('summary')) following = false;
  });
  const observer = new ResizeObserver(() => {
    if (!following) following = distance() < NEAR;
    else if (content.hasChildNodes()) toEnd();
    button.hidden = following;
  });
  observer.observe(content);
  observer.observe(scroller);
  button.addEventListener('click', toEnd);
  const stay = () => { following = false; };
  return { toEnd, stay };
}
