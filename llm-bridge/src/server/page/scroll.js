// Keeps the end of a growing log in view, until the reader scrolls up.

const NEAR = 48;

/** Follows `content` inside `scroller`; `button` leads back to the end. */
export function follow(scroller, content, button) {
  let following = true;
  const toEnd = () => {
    following = true;
    scroller.scrollTop = scroller.scrollHeight;
  };
  scroller.addEventListener('scroll', () => {
    following = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR;
    button.hidden = following;
  }, { passive: true });
  const observer = new ResizeObserver(() => {
    if (following && content.hasChildNodes()) toEnd();
    else button.hidden = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR;
  });
  observer.observe(content);
  observer.observe(scroller);
  button.addEventListener('click', toEnd);
  return { toEnd };
}
