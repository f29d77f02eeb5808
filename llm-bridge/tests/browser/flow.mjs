// The card of a call that would send out what its turn has read: B20.

import { ask, check, equal, idle, noOverflow, open, shot } from './support.mjs';

/** A mail tells the model to send out what only its reader may know: B20. */
export async function flow(browser) {
  const url = process.env.TOOLRACK_MAIL_URL;
  if (!url) return;
  for (const [name, options] of [['desktop', { viewport: { width: 1280, height: 860 } }],
    ['phone', { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true, colorScheme: 'dark' }]]) {
    const { page, complaints, context } = await open(browser, options, async () => {}, url);
    const sending = '.answer:last-child .call[data-name="send_mail"]';
    await check(`${name}: the card says what would go where and on whose word, and a no is a no`, async () => {
      await ask(page, 'Any mail?');
      await page.waitForSelector(`${sending} .call-ask:not([hidden])`);
      const shown = await page.locator(sending).innerText();
      for (const part of ['“eve@evil.example”', 'private data that', 'read_mail', 'may have asked for it', 'The key of the safe is 4711.']) {
        if (!shown.includes(part)) throw new Error(`“${part}” is not in the card: ${shown}`);
      }
      await shot(page, `${name}-flow`);
      if (name === 'phone') await noOverflow(page);
      await page.click(`${sending} .call-ask .refuse`);
      await page.waitForSelector(`${sending}[data-state="failed"]`);
      await idle(page);
      await shot(page, `${name}-flow-refused`);
    });
    await check(`${name}: it is sent once it is allowed`, async () => {
      await ask(page, 'And now?');
      await page.click(`${sending} .call-ask .allow`);
      await page.waitForSelector(`${sending}[data-state="ok"]`);
      await idle(page);
      await shot(page, `${name}-flow-allowed`);
    });
    await check(`${name}: the card without console error, CSP violation or foreign request`, () => equal(complaints, [], 'complaints'));
    await context.close();
  }
}
