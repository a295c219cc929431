#!/usr/bin/env node
// npm links what is there when it installs, which is before anything is built.
import "../dist/main.js";
