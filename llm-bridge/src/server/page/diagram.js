// Inside the frame of a diagram: draws what the page sends, and says how high it is.

addEventListener('message', async ({ data, source }) => {
  if (source !== parent || typeof data?.source !== 'string') return;
  const { mermaid } = /** @type {any} */ (globalThis);
  const place = /** @type {HTMLElement} */ (document.getElementById('place'));
  try {
    mermaid.initialize({ startOnLoad: false, securityLevel: 'strict', theme: data.dark ? 'dark' : 'default', fontFamily: 'system-ui, sans-serif' });
    place.innerHTML = (await mermaid.render('diagram', data.source)).svg;
    const say = () => parent.postMessage({ height: Math.ceil(document.documentElement.scrollHeight) }, '*');
    new ResizeObserver(say).observe(place);
    say();
  } catch (error) {
    parent.postMessage({ error: String(error) }, '*');
  }
});
parent.postMessage({ ready: true }, '*');
