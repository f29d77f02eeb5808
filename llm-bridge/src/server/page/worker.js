// The service worker: keeps the page itself, so that it opens without the server and says so, and brings it to the front when a
// notification is clicked. Chats are never kept here.

const CACHE = 'toolrack-page';
/** @type {any} */
const worker = self;

worker.addEventListener('install', (/** @type {any} */ event) => event.waitUntil(filled().catch(() => {}).then(() => worker.skipWaiting())));
worker.addEventListener('activate', (/** @type {any} */ event) => event.waitUntil(worker.clients.claim()));

worker.addEventListener('fetch', (/** @type {any} */ event) => {
  /** @type {Request} */
  const request = event.request;
  if (request.method !== 'GET') return;
  const scope = new URL(worker.registration.scope).pathname;
  const { pathname } = new URL(request.url);
  if (request.mode === 'navigate' && pathname === scope) event.respondWith(fresh(request));
  else if (pathname.startsWith(`${scope}page/`)) event.respondWith(kept(request, pathname.slice(scope.length)));
});

worker.addEventListener('notificationclick', (/** @type {any} */ event) => {
  event.notification.close();
  event.waitUntil(toFront());
});

/** Shows the page, in its tab where it has one. */
async function toFront() {
  const scope = worker.registration.scope;
  const tabs = await worker.clients.matchAll({ type: 'window', includeUncontrolled: true });
  const tab = tabs.find((/** @type {{ url: string }} */ { url }) => new URL(url).pathname === new URL(scope).pathname);
  return tab ? tab.focus() : worker.clients.openWindow(scope);
}

/** Keeps the page and the files that it names, which were loaded before there was a worker. */
async function filled() {
  const cache = await caches.open(CACHE);
  const response = await fetch(worker.registration.scope);
  if (!response.ok) return;
  const page = await response.clone().text();
  const named = [...page.matchAll(/(?:href|src)="(page\/[^"]+)"/g)].map(([, path]) => path ?? '');
  const languages = (/data-languages="([^"]*)"/.exec(page)?.[1] ?? '').split(' ');
  const [version = ''] = /^page\/[^/]+/.exec(named[0] ?? '') ?? [];
  const spoken = languages.filter((language) => navigator.languages.some((name) => name.split('-')[0] === language));
  await cache.addAll([...new Set([...named, ...[...spoken, 'en'].map((language) => `${version}/languages/${language}.js`)])]);
  await cache.put('page', response);
}

/**
 * The page as the server has it, or as it was.
 * @param {Request} request
 */
async function fresh(request) {
  const cache = await caches.open(CACHE);
  try {
    const response = await fetch(request);
    if (response.ok) await cache.put('page', response.clone());
    // So says a proxy of a server that is away.
    if ([502, 503, 504].includes(response.status)) return (await cache.match('page')) ?? response;
    return response;
  } catch (error) {
    const known = await cache.match('page');
    if (known) return known;
    throw error;
  }
}

/**
 * A file: its address has its version. Those of other versions are dropped.
 * @param {Request} request
 * @param {string} path
 */
async function kept(request, path) {
  const cache = await caches.open(CACHE);
  const known = await cache.match(request);
  // A debug build has new files at the same addresses.
  if (known && !path.startsWith('page/debug/')) return known;
  try {
    const response = await fetch(request);
    if (response.ok) {
      const version = path.split('/').slice(0, 2).join('/');
      for (const other of await cache.keys()) {
        if (other.url.includes('/page/') && !other.url.includes(`/${version}/`)) await cache.delete(other);
      }
      await cache.put(request, response.clone());
    }
    return response;
  } catch (error) {
    if (known) return known;
    throw error;
  }
}
