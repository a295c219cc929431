/** The version in package.json; `npm run release:version` keeps them equal. */
export const VERSION: string = "0.0.0";
