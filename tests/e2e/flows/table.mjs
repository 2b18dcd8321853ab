// What came of each step at each worker: `ok`, `-` where there is no such thing, or `FAIL`.

const STEP_MS = 45_000;

export class Table {
  /** Steps are shown in the order of `names`, then in the order in which they came. */
  constructor(heads, names = []) {
    Object.assign(this, { names, rows: new Map(heads.map((head) => [head, new Map()])), faults: [] });
  }

  /** One cell; a step of the same name that failed before stays failed. */
  async step(head, name, check) {
    const row = this.rows.get(head);
    let timer;
    try {
      const late = new Promise((_, fail) => { timer = setTimeout(fail, STEP_MS, new Error(`not within ${STEP_MS / 1000} s`)); });
      await Promise.race([check(), late]);
      row.set(name, row.get(name) ?? 'ok');
    } catch (fault) {
      row.set(name, 'FAIL');
      this.fault(`${head} ${name}: ${fault.message}${fault.cause ? ` (${fault.cause.message})` : ''}`);
    } finally {
      clearTimeout(timer);
    }
  }

  skip(head, name) {
    this.rows.get(head).set(name, '-');
  }

  fault(text) {
    this.faults.push(text);
  }

  print() {
    const names = [...this.names];
    for (const row of this.rows.values()) for (const name of row.keys()) if (!names.includes(name)) names.push(name);
    const heads = [...this.rows.keys()];
    const width = Math.max(...names.map((name) => name.length)) + 2;
    console.log(`${''.padEnd(width)}${heads.map((head) => head.padEnd(12)).join('')}`);
    for (const name of names) {
      console.log(`${name.padEnd(width)}${heads.map((head) => (this.rows.get(head).get(name) ?? '-').padEnd(12)).join('')}`.trimEnd());
    }
    const cells = [...this.rows.values()].flatMap((row) => [...row.values()]);
    const count = (cell) => cells.filter((found) => found === cell).length;
    console.log(`\n${this.faults.map((fault) => `${fault}\n`).join('')}${count('ok')} ok, ${count('FAIL')} failed`);
  }
}
