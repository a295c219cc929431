import fc from "fast-check";

// Each local run tries other values; a run of CI always the same ones. A failure names its seed and path.
if (process.env["CI"]) fc.configureGlobal({ seed: 20_261_125 });

export default fc;
