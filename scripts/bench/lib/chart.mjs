// A bar chart as SVG, for the documentation.
import { writeFileSync } from "node:fs";

const WIDTH = 700;
const BAR = 22;
const LEFT = 270;
const RIGHT = 90;

/**
 * @param {string} file @param {string} title with the unit
 * @param {readonly { label: string, value: number, ours?: boolean }[]} bars
 */
export function writeChart(file, title, bars) {
  const most = Math.max(...bars.map(({ value }) => value));
  const height = 44 + bars.length * (BAR + 8);
  const rows = bars.map(({ label, value, ours }, i) => {
    const y = 36 + i * (BAR + 8);
    const width = Math.max(1, ((WIDTH - LEFT - RIGHT) * value) / most);
    return [
      `<text x="${LEFT - 8}" y="${y + 15}" text-anchor="end">${label}</text>`,
      `<rect x="${LEFT}" y="${y}" width="${width.toFixed(1)}" height="${BAR}" fill="${ours ? "#2f6f4f" : "#9aa5b1"}"/>`,
      `<text x="${(LEFT + width + 6).toFixed(1)}" y="${y + 15}">${Number(value.toPrecision(3)).toLocaleString("en-US")}</text>`,
    ].join("\n  ");
  });
  writeFileSync(
    file,
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="13" fill="#222">
  <title>${title}</title>
  <rect width="${WIDTH}" height="${height}" fill="#fff"/>
  <text x="12" y="22" font-weight="bold">${title}</text>
  ${rows.join("\n  ")}
</svg>
`,
  );
}
