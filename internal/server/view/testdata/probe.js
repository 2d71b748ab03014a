'use strict';
// The test's eyes in the page: what it finds, it leaves in an attribute of the
// outermost document, which is what the browser prints in the end.
{
  const errors = [];
  addEventListener('error', e => errors.push('error: ' + e.message));
  addEventListener('unhandledrejection', e => errors.push('rejection: ' + e.reason));
  document.addEventListener('securitypolicyviolation', e => errors.push('policy: ' + e.violatedDirective + ' ' + e.blockedURI));
  const shown = e => !e.closest('[hidden]');
  const luminance = colour => {
    const [r, g, b] = colour.match(/[\d.]+/g).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [x, y] = [luminance(a), luminance(b)].sort((m, n) => n - m);
    return (x + 0.05) / (y + 0.05);
  };
  const style = selector => getComputedStyle(document.querySelector(selector));
  // pressed is what the first column of the clients' table has, after its heading was pressed
  // once and twice by the keyboard's way, and what the heading says then.
  let pressed = null;
  const press = () => {
    const table = document.getElementById('table-clients');
    if (pressed || !table || table.hidden) return;
    const heads = [...table.querySelectorAll('th button')];
    const state = () => [...table.querySelectorAll('tbody tr')].map(r => r.cells[0].textContent).concat(heads[0].parentNode.getAttribute('aria-sort'));
    pressed = [1, 2].map(() => {
      heads[0].focus();
      if (document.activeElement !== heads[0]) errors.push('a heading takes no focus');
      heads[0].click();
      return state();
    });
    heads.find(h => h.textContent === 'ops/s').click();
  };
  // holes counts the rows of boxes that do not reach the right edge.
  const holes = () => ['tiles', 'charts', 'tables'].map(id => document.getElementById(id)).reduce((n, box) => {
    const rows = new Map();
    for (const e of [...box.children].filter(shown)) rows.set(e.offsetTop, Math.max(rows.get(e.offsetTop) || 0, e.getBoundingClientRect().right));
    const right = box.getBoundingClientRect().right;
    return n + [...rows.values()].filter(r => Math.abs(right - r) > 2).length;
  }, 0);
  const look = () => {
    if (!document.body || !document.querySelector('#tiles div')) return;
    const root = document.documentElement, back = style('body').backgroundColor, card = style('#tiles div').backgroundColor;
    press();
    const found = {
      pressed: pressed || [], holes: holes(), more: (document.querySelector('#table-clients .more') || {}).textContent || '',
      errors, width: innerWidth, overflow: root.scrollWidth - root.clientWidth, state: root.dataset.state || '',
      says: document.getElementById('state').textContent, server: document.getElementById('server').textContent,
      tiles: Object.fromEntries([...document.querySelectorAll('#tiles dd')].map(e => [e.id.slice(5), e.textContent])),
      tables: Object.fromEntries([...document.querySelectorAll('.table')].filter(shown).map(e => [e.id.slice(6),
        [...e.querySelectorAll('tbody tr')].map(row => [...row.cells].map(c => c.textContent))])),
      charts: Object.fromEntries([...document.querySelectorAll('figure')].filter(shown).map(e => [e.id.slice(6),
        {paths: [...e.querySelectorAll('path')].map(p => p.getAttribute('d')), key: [...e.querySelectorAll('.key li')].map(l => l.textContent)}])),
      dark: luminance(back) < 0.5,
      contrast: Math.min(contrast(style('body').color, back), contrast(style('dt').color, card), contrast(style('#state').color, back)),
      scripts: document.scripts.length, images: document.images.length, pwned: Boolean(top.pwned),
    };
    top.document.documentElement.dataset.found = JSON.stringify(found);
  };
  setInterval(look, 100);
}
