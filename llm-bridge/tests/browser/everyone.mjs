// What holds for everyone: notifications, less motion, the order in which a screen reader meets the page, and that it can be installed.

import { openKept } from './kept.mjs';
import { ANSWERS } from './kept_data.mjs';
import { URL_UNDER_TEST, check, equal } from './support.mjs';

export async function everyone(browser) {
  await check('b17 a call that waits is told once as a notification, while nobody looks', async () => {
    const { page, context } = await openKept(browser, '', {}, async (one) => {
      await one.addInitScript(() => {
        window.told = [];
        window.Notification = class {
          static permission = 'granted';
          static requestPermission = async () => 'granted';
          constructor(title, about) { window.told.push([title, about.tag]); }
        };
        localStorage.setItem('toolrack.notify', 'true');
        Object.defineProperty(document, 'hidden', { get: () => window.away !== false });
      });
    });
    await page.waitForFunction(() => document.title.startsWith('(1)'));
    await page.waitForFunction(() => window.told.length > 0);
    const told = [['drop_file waits for your approval', 'a1']];
    equal(await page.evaluate(() => window.told), told, 'told');
    // Looked for again, when the page is shown again.
    await Promise.all([
      page.waitForResponse((response) => response.url().endsWith('/api/approvals')),
      page.evaluate(() => { window.away = false; document.dispatchEvent(new Event('visibilitychange')); }),
    ]);
    equal(await page.evaluate(() => window.told), told, 'told once');
    await context.close();
  });

  await check('b17 where only the service worker can notify, as on phones, it does, and a click brings the tab to the front', async () => {
    const { page, context } = await openKept(browser, '', {}, async (one) => {
      await one.addInitScript(() => {
        window.told = [];
        window.Notification = class {
          static permission = 'granted';
          constructor() { throw new TypeError('Illegal constructor'); }
        };
        const registration = { active: {}, showNotification: async (title, about) => { window.told.push([title, about.tag]); } };
        Object.defineProperty(navigator, 'serviceWorker', { value: { register: async () => registration, getRegistration: async () => registration } });
        localStorage.setItem('toolrack.notify', 'true');
        Object.defineProperty(document, 'hidden', { get: () => true });
      });
    });
    await page.waitForFunction(() => window.told.length > 0);
    equal(await page.evaluate(() => window.told), [['drop_file waits for your approval', 'a1']], 'told');
    await context.close();
    const done = [];
    const listeners = {};
    const tab = (path) => ({ url: new URL(path, URL_UNDER_TEST).href, focus: () => done.push(`focus ${path}`) });
    let tabs = [tab('admin'), tab('#chat_1')];
    const worker = {
      registration: { scope: URL_UNDER_TEST }, addEventListener: (name, listener) => { listeners[name] = listener; },
      clients: { matchAll: async () => tabs, openWindow: (url) => done.push(`open ${url}`) },
    };
    new Function('self', await (await fetch(new URL('worker.js', URL_UNDER_TEST))).text())(worker);
    for (const left of [tabs, []]) {
      tabs = left;
      let work;
      listeners.notificationclick({ notification: { close: () => done.push('close') }, waitUntil: (one) => { work = one; } });
      await work;
    }
    equal(done, ['close', 'focus #chat_1', 'close', `open ${URL_UNDER_TEST}`], 'clicks');
  });

  await check('b17 the page also opens where a proxy says that its server is away', async () => {
    const [listeners, kept] = [{}, new Map()];
    const worker = { registration: { scope: URL_UNDER_TEST }, addEventListener: (name, listener) => { listeners[name] = listener; } };
    const cache = { match: async (key) => kept.get(key)?.clone(), put: async (key, response) => { kept.set(key, response); } };
    let answer = () => new Response('the page');
    new Function('self', 'caches', 'fetch', await (await fetch(new URL('worker.js', URL_UNDER_TEST))).text())(worker, { open: async () => cache }, async () => answer());
    const opened = async () => {
      let shown;
      listeners.fetch({ request: { method: 'GET', mode: 'navigate', url: URL_UNDER_TEST }, respondWith: (one) => { shown = one; } });
      return (await shown).text();
    };
    const away = () => new Response('Bad gateway', { status: 502 });
    const seen = [];
    for (const next of [away, () => new Response('the page'), away, () => new Response('No', { status: 403 }), () => { throw new TypeError('away'); }]) {
      answer = next;
      seen.push(await opened());
    }
    equal(seen, ['Bad gateway', 'the page', 'the page', 'No', 'the page'], 'shown');
  });

  await check('b17 what is not known yet is not said to be nothing', async () => {
    const silent = { '/api/chats': () => {}, '/api/tools': () => {} };
    const { page, context } = await openKept(browser, '', { viewport: { width: 1280, height: 860 } }, undefined, { ...ANSWERS, ...silent });
    await page.click('#tools-toggle');
    await page.waitForSelector('#tools-filter:focus');
    equal(await page.locator('.empty:visible').count(), 0, 'lists that are said to be empty');
    await context.close();
  });

  await check('b17 a browser that permits no notifications is named as the reason', async () => {
    const { page, context } = await openKept(browser, '', {}, async (one) => {
      await one.addInitScript(() => { window.Notification = class { static permission = 'denied'; static requestPermission = async () => 'denied'; }; });
    });
    await page.click('#settings-open');
    const tick = page.locator('#settings .ask-check input');
    for (let time = 0; time < 2; time += 1) {
      await tick.click();
      await page.waitForSelector('#settings .ask-check + .ask-fault[role="alert"]');
      equal(await tick.isChecked(), false, 'notifications are on');
    }
    await context.close();
  });

  await check('b17 who wants less motion gets panels that do not slide', async () => {
    for (const [reducedMotion, slides] of [['reduce', false], ['no-preference', true]]) {
      const { page, context } = await openKept(browser, '#chat_1', { reducedMotion, viewport: { width: 390, height: 844 } });
      await page.waitForSelector('.answer .text table');
      await page.click('#tools-toggle');
      await page.waitForSelector('#tools-list .tool');
      const motion = await page.evaluate(() => getComputedStyle(document.getElementById('tools')).animationName);
      equal(motion !== 'none', slides, `motion with ${reducedMotion}`);
      await context.close();
    }
  });

  await check('b17 a screen reader meets the chats, what is said, and where to write, in this order', async () => {
    const { page, context } = await openKept(browser, '#chat_1', { viewport: { width: 1280, height: 860 } });
    await page.waitForSelector('.answer .text table');
    await page.waitForSelector('#model');
    const tree = await page.locator('body').ariaSnapshot();
    const met = ['Search chats', 'Trains to Lyon', 'banner', 'qwen3:8b', 'What is (17 + 4) * 23?', 'calculate', 'The sum is', 'cell "483"', 'Regenerate', 'Ask something'];
    const places = met.map((what) => tree.indexOf(what));
    if (places.some((place, index) => place < 0 || place < (places[index - 1] ?? 0))) throw new Error(`${JSON.stringify(met.map((what, index) => [what, places[index]]))} in\n${tree}`);
    await context.close();
  });

  await check('b17 the page can be installed', async () => {
    const { page, context } = await openKept(browser, '', {});
    const found = await page.evaluate(async () => {
      const manifest = await (await fetch(document.querySelector('link[rel="manifest"]').href)).json();
      const icons = await Promise.all(manifest.icons.map(async ({ src }) => (await fetch(src)).ok));
      return { ...manifest, icons };
    });
    equal([found.name, found.display, new URL(found.start_url, URL_UNDER_TEST).href, found.icons], ['Toolrack', 'standalone', URL_UNDER_TEST, [true]], 'manifest');
    const session = await context.newCDPSession(page);
    const { installabilityErrors: errors } = await session.send('Page.getInstallabilityErrors');
    // Each of these tests has a window of its own, as a private one.
    equal(errors.map(({ errorId }) => errorId).filter((id) => id !== 'in-incognito'), [], 'why it cannot be installed');
    await context.close();
  });
}
