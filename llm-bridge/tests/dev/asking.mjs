// The chat page while a server is killed that asks something: asking.py starts it, and another one when it reads `killed`.
//
//   TOOLRACK_URL   address of both servers
//   AMOUNT         what is paid
//   WAY            where the question is answered: `card`, `inbox`, or `reloaded`, the card after the page was opened again
//   CHROMIUM       the browser
//   SHOTS          folder for screenshots; none are taken without it

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { chromium } from 'playwright-core';

const { TOOLRACK_URL, AMOUNT, WAY, CHROMIUM, SHOTS } = process.env;
const browser = await chromium.launch({
  executablePath: CHROMIUM,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});

async function shot(page, name) {
  if (!SHOTS) return;
  mkdirSync(SHOTS, { recursive: true });
  await page.screenshot({ path: join(SHOTS, `asking-${WAY}-${name}.png`), animations: 'disabled' });
}

try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  page.setDefaultTimeout(40_000);
  await page.goto(TOOLRACK_URL);
  await page.fill('#question', `Pay ${AMOUNT}.`);
  await page.keyboard.press('Enter');
  const card = page.locator('.answer .call[data-name="pay"]');
  await card.locator('.ask-form button:text-is("Joint")').click();
  await card.locator('.ask-form input[name="name"]').waitFor();
  // It is kept at once, but in the background.
  await page.waitForTimeout(3000);

  console.log('kill');
  const lines = createInterface({ input: process.stdin });
  await lines[Symbol.asyncIterator]().next();
  lines.close();
  if (WAY === 'reloaded') await page.reload();
  await page.waitForSelector('.notice .go-on');
  await shot(page, 'cut-off');
  if (WAY === 'inbox') await page.click('#inbox-open');
  const form = WAY === 'inbox' ? page.locator('#inbox .ask-form') : card.locator('.ask-form');
  await form.locator('input[name="name"]').fill('Bea');
  await form.locator('input[name="day"]').fill('3');
  await form.locator('button[type="submit"]').click();
  if (WAY === 'inbox') {
    await page.waitForSelector('#inbox .empty');
    await page.keyboard.press('Escape');
  }
  await page.waitForSelector(`.answer-body:has-text("The tool says: ${AMOUNT} EUR from Joint to Bea on day 3, confirmed: true")`);
  await page.waitForSelector('.answer .call[data-name="pay"][data-state="ok"]');
  if (await card.count() !== 1) throw new Error(`${await card.count()} cards`);
  if (await page.locator('.answer .notice').count() > 0) throw new Error('it is still cut off');
  await shot(page, 'done');
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  await browser.close();
}
