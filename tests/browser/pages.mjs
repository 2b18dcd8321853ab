// What must be true of every page, and a picture of each.
import { AxeBuilder } from '@axe-core/playwright';

const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
const WIDTHS = [320, 390, 1100];
const HEIGHT = 900;

/** What a page said to its console, and what it asked of other origins; both must stay empty. */
export function watch(page, wanted) {
  const faults = [];
  page.on('console', (message) => {
    const text = `${message.type()}: ${message.text()}`;
    if (!wanted.some((pattern) => pattern.test(text))) faults.push(`the console says ${text}`);
  });
  page.on('pageerror', (fault) => faults.push(`a script failed: ${fault.message}`));
  page.on('request', (request) => {
    const address = request.url();
    if (!request.isNavigationRequest() && !address.startsWith('data:')) faults.push(`the page asks for ${address}`);
  });
  return faults;
}

/** Looks at the page that is open: in both colours, at each width. */
export async function look(page, name, shots) {
  const faults = [];
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    const { violations } = await new AxeBuilder({ page }).withTags(RULES).analyze();
    for (const { id, help, nodes } of violations) {
      faults.push(`${name} ${colorScheme}: axe ${id}: ${help}: ${nodes.map((node) => node.html).join(' | ').slice(0, 300)}`);
    }
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: HEIGHT });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      if (wide > 0) faults.push(`${name} ${colorScheme}: at ${width} px it is ${wide} px too wide`);
      await page.screenshot({ path: `${shots}/${name}-${colorScheme}-${width}.png`, fullPage: true });
    }
  }
  await page.emulateMedia({ colorScheme: null });
  if (faults.length > 0) throw new Error(faults.join('; '));
}
