// Who has no mouse, little room, another way of writing, or a phone whose keyboard should not come up: all is reached, seen and read.

import { SECTIONS } from './console.mjs';
import { openKept } from './kept.mjs';
import { FROM_THE_RIGHT, hebrew } from './right.mjs';
import { check, equal, shot } from './support.mjs';

const WIDE = { viewport: { width: 1280, height: 900 } };
const CONTROLS = 'a[href], button, input, select, textarea, summary, [tabindex="0"]';

/** What is not reached by Tab, or does not show that it has the focus, or has it where it is not seen. */
async function missed(page) {
  await page.evaluate((controls) => {
    document.activeElement?.blur();
    const radios = new Set();
    // Of a group of radio buttons Tab reaches one.
    window.wanted = new Set([...(document.querySelector('dialog[open]') ?? document).querySelectorAll(controls)].filter((one) => one.tabIndex >= 0 && !one.disabled && one.checkVisibility({ visibilityProperty: true })
      && !(one.type === 'radio' && (radios.has(one.name) || !radios.add(one.name)))));
    window.faults = [];
  }, CONTROLS);
  const most = await page.evaluate(() => window.wanted.size);
  // Areas that scroll may be reached too.
  for (let steps = 0; steps < 2 * most + 20; steps += 1) {
    await page.keyboard.press('Tab');
    const left = await page.evaluate(() => {
      const one = document.activeElement;
      if (!window.wanted.delete(one)) return window.wanted.size;
      const { outlineStyle, outlineWidth } = getComputedStyle(one);
      const shown = one.classList.contains('unseen') || (outlineStyle !== 'none' && outlineWidth !== '0px');
      const { left: x, top: y, right, bottom } = one.getBoundingClientRect();
      const inside = right > 0 && bottom > 0 && x < innerWidth && y < innerHeight;
      const about = one.outerHTML.slice(0, 120);
      if (!shown) window.faults.push(`no focus is seen: ${about}`);
      if (!inside) window.faults.push(`outside of the window: ${about}`);
      return window.wanted.size;
    });
    if (left === 0) break;
  }
  return page.evaluate(() => [...[...window.wanted].filter((one) => one.checkVisibility({ visibilityProperty: true })).map((one) => `not reached: ${one.outerHTML.slice(0, 120)}`), ...window.faults]);
}

export async function reach(browser) {
  await check('b17 every control of a chat is reached by Tab, and shows that it has the focus', async () => {
    const { page, context } = await openKept(browser, '#chat_1', WIDE);
    for (const part of ['#model', '#who', '#inbox-open', '.chat-row', '.answer .hljs-built_in']) await page.waitForSelector(part);
    await page.locator('.call > summary').click();
    equal(await missed(page), [], 'chat');
    await page.click('#settings-open');
    await page.waitForSelector('#settings .rule');
    equal(await missed(page), [], 'settings');
    await page.keyboard.press('Escape');
    await page.click('#inbox-open');
    await page.click('#inbox .remember > summary');
    equal(await missed(page), [], 'inbox');
    await context.close();
  });

  await check('b17 every control of the console is reached by Tab, and shows that it has the focus', async () => {
    const { page, context } = await openKept(browser, 'admin', WIDE);
    const found = [];
    for (const section of SECTIONS) {
      await page.click(`#sections a[href="#${section}"]`);
      await page.waitForSelector(`#section[data-section="${section}"]:not([aria-busy])`);
      found.push(...(await missed(page)).map((fault) => `${section}: ${fault}`));
    }
    await page.click('#sections a[href="#tools"]');
    await page.click('.rows button.link');
    await page.waitForSelector('#tool[open] .rows');
    found.push(...(await missed(page)).map((fault) => `dialog: ${fault}`));
    equal(found, [], 'faults');
    await context.close();
  });

  await check('b17 a screen reader meets who one is, the sections, and what the one that is open has, in this order', async () => {
    const { page, context } = await openKept(browser, 'admin#people', WIDE);
    await page.waitForSelector('#section:not([aria-busy]) .rows');
    const tree = await page.locator('body').ariaSnapshot();
    const met = ['ada', 'navigation', 'Overview', 'Settings', 'main', 'heading "Users and keys" [level=1]', 'New user', 'table "Users"', 'row', 'max', 'heading "Keys" [level=2]', 'table "Keys"'];
    let at = 0;
    for (const what of met) {
      const next = tree.indexOf(what, at);
      if (next < 0) throw new Error(`no ${what} behind ${at} in\n${tree}`);
      at = next;
    }
    await context.close();
  });

  await check('b17 at 320 pixels nothing has to be scrolled sideways', async () => {
    const options = { viewport: { width: 320, height: 640 }, hasTouch: true };
    const wide = (page) => page.evaluate(() => [document.documentElement, document.getElementById('scroller') ?? document.getElementById('section')].map((one) => one.scrollWidth - one.clientWidth).filter((pixels) => pixels > 0));
    const found = [];
    const { page, context } = await openKept(browser, '#chat_1', options);
    await page.waitForSelector('.answer .text table');
    await page.locator('.call > summary').click();
    found.push(...(await wide(page)).map((pixels) => `chat: ${pixels}`));
    await shot(page, 'reach-320');
    await page.goto(`${page.url().split('#')[0]}admin`);
    for (const section of SECTIONS) {
      await page.waitForSelector('#sections');
      await page.evaluate((to) => { location.hash = to; }, section);
      await page.waitForSelector(`#section[data-section="${section}"]:not([aria-busy])`);
      found.push(...(await wide(page)).map((pixels) => `${section}: ${pixels}`));
    }
    equal(found, [], 'pixels too wide');
    await context.close();
  });

  await check('b17 light, dark or as the system has it: a choice holds, also after a reload, and is taken back', async () => {
    const { page, context } = await openKept(browser, '', { ...WIDE, colorScheme: 'dark' });
    const [LIGHT, DARK] = ['rgb(251, 250, 248)', 'rgb(22, 24, 23)'];
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await page.waitForSelector('#examples button');
    equal(await ground(), DARK, 'as the system has it');
    await page.click('#settings-open');
    await page.selectOption('#setting-theme', 'light');
    equal(await ground(), LIGHT, 'light');
    await page.reload();
    await page.waitForSelector('#examples button');
    equal(await ground(), LIGHT, 'after a reload');
    await page.click('#settings-open');
    await page.selectOption('#setting-theme', 'system');
    equal(await ground(), DARK, 'system again');
    await page.emulateMedia({ colorScheme: 'light' });
    equal(await ground(), LIGHT, 'when the system changes');
    await context.close();
  });

  await check('u28 on a phone no keyboard comes up by itself, and elsewhere one can write at once', async () => {
    for (const [options, focus] of [[{ viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }, ''], [WIDE, 'question']]) {
      const { page, context } = await openKept(browser, '', options);
      await page.waitForSelector('#examples button');
      equal(await page.evaluate(() => document.activeElement.id), focus, 'focus');
      await context.close();
    }
  });

  await check('b17 a text from the right stands there, and code, formulas and lines in English from the left', async () => {
    const { page, context } = await openKept(browser, '#chat_1', WIDE, undefined, FROM_THE_RIGHT);
    await page.waitForSelector('.answer .text .hljs-built_in');
    const side = (place) => page.locator(place).evaluate((one) => {
      const range = document.createRange();
      range.selectNodeContents(one);
      const [text, box] = [range.getBoundingClientRect(), one.getBoundingClientRect()];
      return Math.abs(text.right - box.right) < Math.abs(text.left - box.left) ? 'right' : 'left';
    });
    const text = page.locator('.answer .text');
    const direction = (place) => text.locator(place).first().evaluate((one) => getComputedStyle(one).direction);
    equal([await direction('h1'), await direction('p'), await direction('ul'), await direction('table'), await direction('pre'), await direction('> p:last-child')], ['rtl', 'rtl', 'rtl', 'rtl', 'ltr', 'ltr'], 'directions');
    equal([await side('.answer .text h1'), await side('.answer .text > p:last-child')], ['right', 'left'], 'sides');
    await shot(page, 'reach-text-from-the-right');
    await context.close();
  });

  await check('b17 a language from the right has its page from the right', async () => {
    for (const [width, address] of [[1280, '#chat_1'], [390, '#chat_1'], [1280, 'admin#people'], [390, 'admin#people']]) {
      const { page, context } = await openKept(browser, address, { viewport: { width, height: 860 }, locale: 'he-IL' }, hebrew, FROM_THE_RIGHT);
      await page.waitForSelector(address.startsWith('admin') ? '#section:not([aria-busy]) .rows' : '.answer .text .hljs-built_in');
      equal(await page.evaluate(() => [document.documentElement.dir, document.documentElement.lang, document.documentElement.scrollWidth - innerWidth]), ['rtl', 'he', 0], address);
      const [beside, main] = address.startsWith('admin') ? ['#sections', '#section'] : ['#chats', '#app'];
      if (width > 1000) equal(await page.evaluate(([one, other]) => document.querySelector(one).getBoundingClientRect().left >= document.querySelector(other).getBoundingClientRect().right - 1, [beside, main]), true, `${beside} is on the right`);
      await shot(page, `reach-from-the-right-${width}-${address.replace(/\W/g, '')}`);
      await context.close();
    }
  });
}
