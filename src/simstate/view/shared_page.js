"use strict";
// Text of the recording reaches the page as text nodes and properties only.
const $ = (id) => document.getElementById(id);
const SIGNS = { reset: "↺", divergence: "✖", event: "◆", write: "✎" };
const COLOURS = ["#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf"];
const ARRAYS = { f4: Float32Array, u2: Uint16Array, i2: Int16Array, u4: Uint32Array, i1: Int8Array, u1: Uint8Array };

function make(tag, text = "", name = "") {
  const found = document.createElement(tag);
  found.textContent = text;
  found.className = name;
  return found;
}

async function unpacked() {
  const text = atob($("data").textContent.trim());
  $("data").remove();
  const bytes = new Uint8Array(text.length);
  for (let k = 0; k < text.length; k++) bytes[k] = text.charCodeAt(k);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  const run = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const array = (ref) => new ARRAYS[ref.type](buffer, 8 + length + ref.at, ref.size);
  return { run, array };
}

function number(value) {
  return Number.isFinite(value) ? String(Number(value.toPrecision(5))) : String(value);
}

// The last index whose value is at most x, in rising values.
function indexOf(values, x) {
  let low = 0, high = values.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (values[middle] <= x) low = middle; else high = middle - 1;
  }
  return low;
}

function tip(text, event) {
  const box = $("tip");
  box.hidden = !text;
  if (!text) return;
  box.textContent = text;
  const x = Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 8);
  const y = event.clientY + 18 + box.offsetHeight > innerHeight ? event.clientY - box.offsetHeight - 10 : event.clientY + 18;
  box.style.left = `${Math.max(x, 4)}px`;
  box.style.top = `${Math.max(y, 4)}px`;
}

// Matrices of 16 numbers, column by column.
function product(a, b) {
  const out = new Float32Array(16);
  for (let c = 0; c < 4; c++)
    for (let r = 0; r < 4; r++)
      out[4 * c + r] = a[r] * b[4 * c] + a[4 + r] * b[4 * c + 1] + a[8 + r] * b[4 * c + 2] + a[12 + r] * b[4 * c + 3];
  return out;
}

function pose(p, q) {
  const [w, x, y, z] = q;
  return new Float32Array([
    1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y), 0,
    2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x), 0,
    2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y), 0,
    p[0], p[1], p[2], 1,
  ]);
}

const minus = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const unit = (a) => { const n = Math.hypot(...a) || 1; return [a[0] / n, a[1] / n, a[2] / n]; };

function looking(eye, goal) {
  const back = unit(minus(eye, goal));
  const up = Math.abs(back[2]) > 0.999 ? [0, 1, 0] : [0, 0, 1];
  const right = unit(cross(up, back));
  const top = cross(back, right);
  return new Float32Array([
    right[0], top[0], back[0], 0, right[1], top[1], back[1], 0, right[2], top[2], back[2], 0,
    -dot(right, eye), -dot(top, eye), -dot(back, eye), 1,
  ]);
}

function perspective(focal, aspect, near, far) {
  return new Float32Array([focal / aspect, 0, 0, 0, 0, focal, 0, 0, 0, 0, (far + near) / (near - far), -1, 0, 0, 2 * far * near / (near - far), 0]);
}

function box(half, depth) {
  return new Float32Array([1 / half, 0, 0, 0, 0, 1 / half, 0, 0, 0, 0, -1 / depth, 0, 0, 0, 0, 1]);
}

const SHADE = `
uniform highp sampler2DShadow u_shade;
float sunlight(vec4 s) {
  vec3 c = s.xyz * 0.5 + 0.5;
  if (any(lessThan(c, vec3(0.0))) || any(greaterThan(c, vec3(1.0)))) return 1.0;
  float sum = 0.0;
  for (int x = -1; x <= 1; x++) for (int y = -1; y <= 1; y++)
    sum += texture(u_shade, vec3(c.xy + vec2(x, y) * 0.0008, c.z - 0.0015));
  return sum / 9.0;
}`;
const SHADERS = {
  solid: [`#version 300 es
layout(location=0) in vec3 a_place; layout(location=1) in vec3 a_normal;
layout(location=2) in vec4 a_colour; layout(location=3) in vec2 a_uv;
uniform mat4 u_place, u_view, u_sun; uniform vec3 u_low, u_step;
out vec3 v_pos, v_normal; out vec4 v_colour, v_sun; out vec2 v_uv;
void main() {
  vec4 p = u_place * vec4(u_low + a_place * u_step, 1.0);
  v_pos = p.xyz; v_normal = mat3(u_place) * a_normal; v_colour = a_colour; v_uv = a_uv;
  v_sun = u_sun * p; gl_Position = u_view * p;
}`, `#version 300 es
precision highp float;
in vec3 v_pos, v_normal; in vec4 v_colour, v_sun; in vec2 v_uv;
uniform vec4 u_rgba; uniform vec3 u_eye, u_light; uniform sampler2D u_image; uniform bool u_textured;
${SHADE}
out vec4 colour;
void main() {
  vec3 n = normalize(v_normal), e = normalize(u_eye - v_pos);
  vec4 own = u_rgba * v_colour;
  if (u_textured) own *= texture(u_image, v_uv);
  float sun = max(dot(n, -u_light), 0.0);
  float shade = sun > 0.0 ? sunlight(v_sun) : 0.0;
  float light = 0.36 * mix(0.62, 1.12, n.z * 0.5 + 0.5) + 0.5 * sun * shade + 0.12 * max(dot(n, e), 0.0);
  float shine = 0.1 * pow(max(dot(n, normalize(e - u_light)), 0.0), 30.0) * shade;
  float rim = 0.1 * pow(1.0 - max(dot(n, e), 0.0), 4.0);
  colour = vec4(own.rgb * light + shine + rim * 0.5, own.a);
}`],
  depth: [`#version 300 es
layout(location=0) in vec3 a_place;
uniform mat4 u_place, u_view; uniform vec3 u_low, u_step;
void main() { gl_Position = u_view * u_place * vec4(u_low + a_place * u_step, 1.0); }`, `#version 300 es
precision mediump float; uniform vec4 u_rgba; out vec4 colour; void main() { colour = u_rgba; }`],
  floor: [`#version 300 es
uniform mat4 u_place, u_view, u_sun; uniform vec2 u_half;
out vec3 v_pos, v_own; out vec4 v_sun;
void main() {
  vec2 c = vec2(gl_VertexID & 1, gl_VertexID >> 1) * 2.0 - 1.0;
  v_own = vec3(c * u_half, 0.0);
  vec4 p = u_place * vec4(v_own, 1.0);
  v_pos = p.xyz; v_sun = u_sun * p; gl_Position = u_view * p;
}`, `#version 300 es
precision highp float;
in vec3 v_pos, v_own; in vec4 v_sun;
uniform vec3 u_rgb, u_eye, u_haze; uniform float u_cell, u_fade;
${SHADE}
out vec4 colour;
float lines(float cell) {
  vec2 at = v_own.xy / cell, wide = fwidth(at);
  vec2 near = abs(fract(at - 0.5) - 0.5) / wide;
  return (1.0 - min(min(near.x, near.y) / 1.2, 1.0)) * clamp(0.35 / max(wide.x, wide.y), 0.0, 1.0);
}
void main() {
  float grid = 0.10 * lines(u_cell) + 0.16 * lines(5.0 * u_cell);
  vec3 own = u_rgb * (0.6 + 0.4 * sunlight(v_sun));
  own = mix(own, vec3(dot(u_rgb, vec3(0.333)) > 0.45 ? 0.0 : 1.0), grid);
  float far = 1.0 - exp(-pow(distance(u_eye, v_pos) / u_fade, 2.0));
  colour = vec4(mix(own, u_haze, far), 1.0);
}`],
  sky: [`#version 300 es
out vec2 v_at;
void main() { v_at = vec2(gl_VertexID & 1, gl_VertexID >> 1) * 4.0 - 1.0; gl_Position = vec4(v_at, 0.9999, 1.0); }`, `#version 300 es
precision highp float;
in vec2 v_at; uniform mat4 u_view; uniform vec2 u_span; uniform vec3 u_haze, u_high; out vec4 colour;
void main() {
  vec3 ray = normalize(vec3(v_at * u_span, -1.0));
  float up = dot(vec3(u_view[2][0], u_view[2][1], u_view[2][2]), ray);
  colour = vec4(mix(u_haze, u_high, sqrt(clamp(up, 0.0, 1.0))), 1.0);
}`],
};

class Scene {
  constructor(canvas, run, array) {
    this.canvas = canvas;
    this.data = run.scene;
    const gl = canvas.getContext("webgl2", { antialias: true });
    if (!gl) throw new Error("This browser has no WebGL 2: the scene is not drawn. Plots and tables are below.");
    this.gl = gl;
    this.pos = array(this.data.pos);
    this.quat = array(this.data.quat);
    this.programs = Object.fromEntries(Object.entries(SHADERS).map(([name, texts]) => [name, this.program(texts)]));
    this.meshes = this.data.meshes.map((mesh) => this.mesh(mesh, array));
    this.local = this.data.draws.map((row) => row.map((one) => pose(one.pos, one.quat)));
    this.shade = this.shadeMap(2048);
    this.empty = gl.createVertexArray();
    this.grid = Math.max(...this.data.offsets.map((o) => Math.hypot(...o)));
    this.goal = [...this.data.centre];
    this.distance = 2.4 * (this.data.size + 0.8 * this.grid);
    this.azimuth = -0.75;
    this.elevation = 0.42;
    this.frame = 0;
    this.row = 0;
    this.dark = false;
  }

  program([vertex, fragment]) {
    const gl = this.gl, made = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      gl.attachShader(made, shader);
    }
    gl.linkProgram(made);
    if (!gl.getProgramParameter(made, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(made) || "The shaders do not link.");
    const at = {};
    for (let k = 0; k < gl.getProgramParameter(made, gl.ACTIVE_UNIFORMS); k++) {
      const { name } = gl.getActiveUniform(made, k);
      at[name] = gl.getUniformLocation(made, name);
    }
    return { made, at };
  }

  mesh(packed, array) {
    const gl = this.gl, found = gl.createVertexArray();
    gl.bindVertexArray(found);
    const attribute = (index, ref, size, kind, normalised) => {
      if (!ref) return;
      gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
      gl.bufferData(gl.ARRAY_BUFFER, array(ref), gl.STATIC_DRAW);
      gl.enableVertexAttribArray(index);
      gl.vertexAttribPointer(index, size, kind, normalised, 0, 0);
    };
    attribute(0, packed.places, 3, gl.UNSIGNED_SHORT, false);
    attribute(1, packed.normals, 3, gl.BYTE, true);
    attribute(2, packed.colours, 3, gl.UNSIGNED_BYTE, true);
    attribute(3, packed.uv, 2, gl.FLOAT, false);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, array(packed.faces), gl.STATIC_DRAW);
    const kind = packed.faces.type === "u2" ? gl.UNSIGNED_SHORT : gl.UNSIGNED_INT;
    const mesh = { found, kind, count: packed.faces.size, low: packed.low, step: packed.step, image: null };
    if (packed.image) this.image(mesh, array(packed.image));
    return mesh;
  }

  async image(mesh, bytes) {
    const gl = this.gl;
    const picture = await createImageBitmap(new Blob([bytes], { type: "image/png" }), { imageOrientation: "flipY" });
    mesh.image = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, mesh.image);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, gl.RGBA, gl.UNSIGNED_BYTE, picture);
    gl.generateMipmap(gl.TEXTURE_2D);
    this.changed();
  }

  shadeMap(side) {
    const gl = this.gl, texture = gl.createTexture(), frame = gl.createFramebuffer();
    gl.bindTexture(gl.TEXTURE_2D, texture);
    gl.texStorage2D(gl.TEXTURE_2D, 1, gl.DEPTH_COMPONENT24, side, side);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_COMPARE_MODE, gl.COMPARE_REF_TO_TEXTURE);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.LINEAR);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.LINEAR);
    gl.bindFramebuffer(gl.FRAMEBUFFER, frame);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, gl.TEXTURE_2D, texture, 0);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    return { texture, frame, side };
  }

  changed() {}

  place(row, body) {
    const at = (this.frame * this.data.worlds.length + row) * this.data.bodies.length + body;
    const p = this.pos.subarray(3 * at, 3 * at + 3), q = this.quat.subarray(4 * at, 4 * at + 4), o = this.data.offsets[row];
    return { pos: [p[0] + o[0], p[1] + o[1], p[2] + o[2]], own: p, quat: Array.from(q, (x) => x / 32767) };
  }

  follow() {
    const found = Array.from(this.place(this.row, this.data.followed).own);  // the grid stays in view
    if (found.every(Number.isFinite)) this.goal = found;
  }

  eye() {
    const c = Math.cos(this.elevation);
    return [
      this.goal[0] + this.distance * c * Math.cos(this.azimuth),
      this.goal[1] + this.distance * c * Math.sin(this.azimuth),
      this.goal[2] + this.distance * Math.sin(this.elevation),
    ];
  }

  use(name, values) {
    const gl = this.gl, { made, at } = this.programs[name];
    gl.useProgram(made);
    for (const [key, value] of Object.entries(values)) {
      if (!(key in at)) continue;
      if (typeof value === "number") gl.uniform1f(at[key], value);
      else gl[{ 2: "uniform2fv", 3: "uniform3fv", 4: "uniform4fv" }[value.length] || "uniformMatrix4fv"](at[key], ...(value.length === 16 ? [false, value] : [value]));
    }
    return at;
  }

  // Poses of all that is drawn, in the frame.
  placed() {
    const found = [];
    this.data.draws.forEach((row, k) => {
      const bodies = new Map();
      row.forEach((one, j) => {
        if (!bodies.has(one.body)) {
          const { pos, quat } = this.place(k, one.body);
          bodies.set(one.body, pos.every(Number.isFinite) ? pose(pos, quat) : null);
        }
        const at = bodies.get(one.body);
        if (at) found.push({ one, row: k, mesh: this.meshes[one.mesh], at: product(at, this.local[k][j]) });
      });
    });
    return found;
  }

  draws(name, values, parts, rgba = (part) => part.one.rgba) {
    const gl = this.gl, at = this.use(name, values);
    gl.vertexAttrib4f(2, 1, 1, 1, 1);
    for (const part of parts) {
      gl.uniformMatrix4fv(at.u_place, false, part.at);
      gl.uniform3fv(at.u_low, part.mesh.low);
      gl.uniform3fv(at.u_step, part.mesh.step);
      if (at.u_rgba) gl.uniform4fv(at.u_rgba, rgba(part));
      if (at.u_textured) {
        gl.uniform1i(at.u_textured, part.mesh.image ? 1 : 0);
        gl.activeTexture(gl.TEXTURE1);
        gl.bindTexture(gl.TEXTURE_2D, part.mesh.image);
      }
      gl.bindVertexArray(part.mesh.found);
      gl.drawElements(gl.TRIANGLES, part.mesh.count, part.mesh.kind, 0);
    }
  }

  cameras() {
    const { width, height } = this.canvas, focal = 2.1, aspect = width / height;
    const eye = this.eye(), view = looking(eye, this.goal);
    const camera = product(perspective(focal, aspect, this.distance / 100, this.distance * 60), view);
    const reach = 1.5 * this.data.size + 1.2 * this.grid;
    const from = this.goal.map((x, k) => x - 4 * reach * this.data.sun[k]);
    const sun = looking(from, this.goal);
    sun[14] += 4 * reach;  // the goal in the middle of the box
    return { eye, view, camera, sun: product(box(reach, 5 * reach), sun), span: [aspect / focal, 1 / focal], reach };
  }

  draw() {
    const gl = this.gl, ratio = Math.min(devicePixelRatio || 1, 2);
    const wide = Math.round(this.canvas.clientWidth * ratio), high = Math.round(this.canvas.clientHeight * ratio);
    if (this.canvas.width !== wide || this.canvas.height !== high) [this.canvas.width, this.canvas.height] = [wide, high];
    const parts = this.placed(), see = this.cameras();
    const solid = parts.filter((part) => part.one.rgba[3] > 0.999), glass = parts.filter((part) => part.one.rgba[3] <= 0.999);
    gl.enable(gl.DEPTH_TEST);
    gl.enable(gl.CULL_FACE);
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.shade.frame);
    gl.viewport(0, 0, this.shade.side, this.shade.side);
    gl.clear(gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.POLYGON_OFFSET_FILL);
    gl.polygonOffset(2, 4);
    this.draws("depth", { u_view: see.sun }, solid);
    gl.disable(gl.POLYGON_OFFSET_FILL);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    gl.viewport(0, 0, wide, high);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D, this.shade.texture);
    const dim = this.dark ? 0.2 : 1;
    const [haze, zenith] = this.data.sky.map((c) => c.map((x) => dim * x / 255));
    this.surroundings(see, haze, zenith, dim);
    const light = { u_view: see.camera, u_sun: see.sun, u_eye: see.eye, u_light: this.data.sun };
    const at = this.use("solid", {});
    gl.uniform1i(at.u_shade, 0);
    gl.uniform1i(at.u_image, 1);
    this.draws("solid", light, solid);
    if (glass.length) {
      gl.enable(gl.BLEND);
      gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
      gl.depthMask(false);
      this.draws("solid", light, glass);
      gl.depthMask(true);
      gl.disable(gl.BLEND);
    }
  }

  surroundings(see, haze, zenith, dim) {
    const gl = this.gl;
    gl.disable(gl.CULL_FACE);
    gl.bindVertexArray(this.empty);
    this.use("sky", { u_view: see.view, u_span: see.span, u_haze: haze, u_high: zenith });
    gl.depthMask(false);
    gl.drawArrays(gl.TRIANGLE_STRIP, 0, 3);
    gl.depthMask(true);
    const cell = 10 ** Math.round(Math.log10(this.data.size / 2));
    const several = this.data.worlds.length > 1;
    for (const floor of this.data.floors) {
      const r = floor.rot, endless = several || !floor.half[0] || !floor.half[1];
      const half = endless ? [40 * this.distance, 40 * this.distance] : floor.half;
      const shift = endless ? minus(this.goal, floor.pos) : [0, 0, 0];
      const snap = (column) => 5 * cell * Math.round((r[column] * shift[0] + r[3 + column] * shift[1] + r[6 + column] * shift[2]) / (5 * cell));
      const [x, y] = [snap(0), snap(1)];
      const pos = floor.pos.map((p, k) => p + r[3 * k] * x + r[3 * k + 1] * y);
      const at = new Float32Array([r[0], r[3], r[6], 0, r[1], r[4], r[7], 0, r[2], r[5], r[8], 0, ...pos, 1]);
      const own = this.use("floor", {
        u_place: at, u_view: see.camera, u_sun: see.sun, u_eye: see.eye, u_haze: haze, u_half: half,
        u_rgb: floor.rgb.map((v) => v * (this.dark ? 0.35 : 1)), u_cell: cell, u_fade: 6 * (this.distance + see.reach),
      });
      gl.uniform1i(own.u_shade, 0);
      gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
    }
    gl.enable(gl.CULL_FACE);
  }

  // What is at a pixel: drawn once more, in the colour of its number.
  pick(x, y) {
    const gl = this.gl, parts = this.placed(), see = this.cameras(), seen = new Uint8Array(4);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    const ids = new Map(parts.map((part, k) => [part, k + 1]));
    this.draws("depth", { u_view: see.camera }, parts, (part) => [(ids.get(part) & 255) / 255, (ids.get(part) >> 8) / 255, 0, 1]);
    const scale = this.canvas.width / this.canvas.clientWidth;
    gl.readPixels(Math.round(x * scale), this.canvas.height - Math.round(y * scale), 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, seen);
    this.changed();
    return parts[seen[0] + 256 * seen[1] - 1];
  }
}

function orbit(scene, changed) {
  const canvas = scene.canvas, down = new Map();
  let moved = 0;
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    down.set(event.pointerId, event);
    moved = 0;
    tip("");
  });
  canvas.addEventListener("pointermove", (event) => {
    const last = down.get(event.pointerId);
    if (!last) return;
    const dx = event.clientX - last.clientX, dy = event.clientY - last.clientY;
    moved += Math.abs(dx) + Math.abs(dy);
    down.set(event.pointerId, event);
    if (event.shiftKey || event.buttons & 6) {
      const scale = scene.distance / canvas.clientHeight, a = scene.azimuth;
      $("follow").checked = false;
      scene.goal = [scene.goal[0] + scale * (dx * Math.sin(a) - dy * Math.cos(a)), scene.goal[1] - scale * (dx * Math.cos(a) + dy * Math.sin(a)), scene.goal[2]];
    } else {
      scene.azimuth -= dx * 0.008;
      scene.elevation = Math.min(Math.max(scene.elevation + dy * 0.008, -1.5), 1.55);
    }
    changed();
  });
  canvas.addEventListener("pointerup", (event) => {
    down.delete(event.pointerId);
    if (moved > 3) return;
    const part = scene.pick(event.offsetX, event.offsetY);
    if (!part) return tip("");
    const own = scene.place(part.row, part.one.body).own;
    tip(`${scene.data.bodies[part.one.body]}, world ${scene.data.worlds[part.row]}\nlink origin, world axes: (${Array.from(own, (x) => x.toFixed(4)).join(", ")}) m`, event);
  });
  canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    scene.distance *= Math.exp(0.001 * event.deltaY);
    changed();
  }, { passive: false });
}

function contractOf([unit, axes, point]) {
  return `unit: ${unit || "1"}\naxes: ${axes || "none"}\npoint: ${point || "none"}`;
}

class Plot {
  constructor(column, run, array, goTo) {
    this.column = column;
    this.times = array(column.times);
    this.values = array(column.values);
    this.count = column.names.length;
    this.run = run;
    this.end = run.end;
    this.row = 0;
    this.now = 0;
    this.chosen = -1;
    this.figure = make("figure");
    this.details = make("details");
    this.canvas = make("canvas");
    const units = new Set(column.contracts.map((c) => c[0]));
    const summary = make("summary", column.name);
    const some = column.left_out ? `, ${this.count} of ${this.count + column.left_out} components` : "";
    summary.append(make("span", `  [${units.size > 1 ? "several units" : column.contracts[0][0] || "1"}]${some}`));
    this.legend = make("div", "", "legend");
    column.names.slice(0, 24).forEach((name, k) => {
      const entry = make("span"), sign = make("i");
      sign.style.background = COLOURS[k % 10];
      entry.append(sign, name);
      entry.addEventListener("pointerenter", (event) => { this.choose(k); tip(`${name}\n${contractOf(column.contracts[k])}`, event); });
      entry.addEventListener("pointerleave", () => { this.choose(-1); tip(""); });
      this.legend.append(entry);
    });
    if (this.count > 24) this.legend.append(` … ${this.count - 24} more`);
    this.details.append(summary, this.canvas, this.legend);
    this.figure.append(this.details);
    this.canvas.setAttribute("aria-label", `${column.name} over time`);
    this.details.addEventListener("toggle", () => this.draw());
    this.canvas.addEventListener("pointermove", (event) => this.hover(event, goTo));
    this.canvas.addEventListener("pointerdown", (event) => goTo(this.timeAt(event)));
    this.canvas.addEventListener("pointerleave", () => { this.choose(-1); tip(""); });
  }

  timeAt(event) {
    return Math.min(Math.max((event.offsetX - 46) / (this.canvas.clientWidth - 54), 0), 1) * this.end;
  }

  value(component, sample) {
    return this.values[(this.row * this.count + component) * this.times.length + sample];
  }

  bounds() {
    const size = this.count * this.times.length, first = this.row * size;
    let low = Infinity, high = -Infinity;
    for (let k = first; k < first + size; k++) {
      const v = this.values[k];
      if (v < low && v > -Infinity) low = v;
      if (v > high && v < Infinity) high = v;
    }
    if (!(low <= high)) [low, high] = [-1, 1];
    const margin = 0.06 * (high - low) || 0.5 * Math.abs(high) || 1;
    return [low - margin, high + margin];
  }

  // Curves are drawn once into a picture; the line at the present time over it.
  draw() {
    if (!this.details.open) return;
    const ratio = devicePixelRatio || 1, wide = this.canvas.clientWidth, high = this.canvas.clientHeight;
    this.canvas.width = Math.round(wide * ratio);
    this.canvas.height = Math.round(high * ratio);
    const style = getComputedStyle(document.body), ink = style.getPropertyValue("--soft"), line = style.getPropertyValue("--line");
    const [low, top] = this.bounds();
    this.x = (t) => 46 + (wide - 54) * t / this.end;
    this.y = (v) => high - 18 - (high - 26) * (v - low) / (top - low);
    const picture = this.picture = document.createElement("canvas");
    [picture.width, picture.height] = [this.canvas.width, this.canvas.height];
    const pen = picture.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = "11px system-ui, sans-serif";
    pen.fillStyle = ink;
    pen.strokeStyle = line;
    pen.beginPath();
    for (const v of ticks(low, top, 4)) {
      pen.textAlign = "right";
      pen.fillText(number(v), 42, this.y(v) + 4);
      pen.moveTo(46, this.y(v));
      pen.lineTo(wide - 8, this.y(v));
    }
    for (const t of ticks(0, this.end, 6)) {
      pen.textAlign = this.x(t) > wide - 24 ? "right" : "center";
      pen.fillText(`${number(t)} s`, Math.min(this.x(t), wide - 2), high - 4);
      pen.moveTo(this.x(t), 6);
      pen.lineTo(this.x(t), high - 18);
    }
    pen.stroke();
    const breaks = this.run.marks.filter((m) => m[2] === this.run.scene.worlds[this.row] && m[1] === "reset").map((m) => m[0]);
    for (const [time, kind, world] of this.run.marks) {
      if (world !== this.run.scene.worlds[this.row] || kind === "write") continue;
      pen.fillStyle = { reset: "#1a8a3c", divergence: "#d62c20", event: "#b26b00" }[kind];
      pen.fillRect(this.x(time) - 0.5, 4, 1, high - 22);
    }
    for (let k = 0; k < this.count; k++) this.curve(pen, k, breaks, 1.2);
    this.breaks = breaks;
    this.at(this.now);
  }

  curve(pen, component, breaks, width) {
    pen.strokeStyle = COLOURS[component % 10];
    pen.lineWidth = width;
    pen.setLineDash([[], [5, 3], [2, 2], [8, 2, 2, 2]][Math.floor(component / 10) % 4]);
    pen.beginPath();
    let up = true, next = 0;
    for (let k = 0; k < this.times.length; k++) {
      const v = this.value(component, k);
      while (next < breaks.length && breaks[next] <= this.times[k]) { up = true; next++; }
      if (!Number.isFinite(v)) { up = true; continue; }
      if (up) pen.moveTo(this.x(this.times[k]), this.y(v)); else pen.lineTo(this.x(this.times[k]), this.y(v));
      up = false;
    }
    pen.stroke();
    pen.setLineDash([]);
  }

  at(time) {
    this.now = time;
    if (!this.picture || !this.details.open) return;
    const pen = this.canvas.getContext("2d"), ratio = devicePixelRatio || 1;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    pen.drawImage(this.picture, 0, 0);
    pen.scale(ratio, ratio);
    if (this.chosen >= 0) this.curve(pen, this.chosen, this.breaks, 3);
    pen.fillStyle = getComputedStyle(document.body).getPropertyValue("--accent");
    pen.fillRect(this.x(time) - 0.75, 4, 1.5, this.canvas.clientHeight - 22);
  }

  choose(component) {
    if (component === this.chosen) return;
    this.chosen = component;
    this.at(this.now);
  }

  hover(event, goTo) {
    const time = this.timeAt(event);
    if (event.buttons & 1) goTo(time);
    const after = Math.min(indexOf(this.times, time) + 1, this.times.length - 1);
    let sample = after && time - this.times[after - 1] < this.times[after] - time ? after - 1 : after;
    const every = this.column.every;
    if (every > 1) sample -= sample % 2;
    let best = Infinity, chosen = -1;
    for (let k = 0; k < this.count; k++) {
      const away = Math.abs(this.y(this.value(k, sample)) - event.offsetY);
      if (away < best) { best = away; chosen = k; }
    }
    this.choose(chosen);
    if (chosen < 0) return tip("");
    const contract = this.column.contracts[chosen], value = number(this.value(chosen, sample));
    const shown = every > 1 ? `${value} … ${number(this.value(chosen, sample + 1))} ${contract[0]} (extremes of ${every} samples)` : `${value} ${contract[0]}`;
    tip(`${this.column.names[chosen]}: ${shown}\nat ${this.times[sample].toFixed(3)} s, world ${this.run.scene.worlds[this.row]}\n${contractOf(contract)}`, event);
  }
}

function ticks(low, high, count) {
  const rough = (high - low) / count, ten = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * ten).find((s) => s >= rough), found = [];
  for (let k = Math.ceil(low / step); k * step <= high; k++) found.push(Number((k * step).toPrecision(12)));
  return found;
}

function table(heads, rows) {
  const found = make("table");
  if (heads) {
    const row = make("tr");
    heads.forEach((head) => row.append(make("th", head)));
    found.append(row);
  }
  for (const cells of rows) {
    const row = make("tr");
    cells.forEach((cell, k) => row.append(make(heads || k ? "td" : "th", cell)));
    found.append(row);
  }
  return found;
}

class Player {
  constructor(run, array) {
    this.run = run;
    this.times = array(run.times);
    run.end = this.end = this.times[this.times.length - 1];
    this.now = 0;
    this.playing = false;
    this.row = 0;
    this.waiting = false;
    this.plots = run.columns.map((column) => new Plot(column, run, array, (time) => this.goTo(time)));
    this.plots.forEach((plot) => $("plots").append(plot.figure));
    try {
      this.scene = new Scene($("scene"), run, array);
      this.scene.changed = () => this.later();
      orbit(this.scene, () => this.later());
      const away = run.scene.soft ? `${run.scene.soft} skins or flexible bodies are not drawn.` : "";
      if (away) this.note(away);
    } catch (error) {
      this.note(error.message);
      $("scene").hidden = true;
    }
    $("time").max = this.end;
    run.scene.worlds.forEach((world) => $("world").append(make("option", String(world))));
    $("of-world").hidden = run.scene.worlds.length < 2;
    this.listen();
    this.select(0);
    this.plots.slice(0, 4).forEach((plot) => { plot.details.open = true; });
  }

  note(text) {
    $("note").textContent = text;
    $("note").hidden = false;
  }

  listen() {
    $("play").addEventListener("click", () => this.play(!this.playing));
    $("time").addEventListener("input", () => { this.play(false); this.goTo(Number($("time").value)); });
    $("world").addEventListener("change", () => this.select($("world").selectedIndex));
    $("follow").addEventListener("change", () => this.later());
    $("copy").addEventListener("click", () => navigator.clipboard.writeText(this.run.command).then(() => { $("copy").textContent = "copied"; }, () => {}));
    $("theme").addEventListener("click", () => this.theme(!document.documentElement.classList.contains("dark")));
    addEventListener("resize", () => { this.plots.forEach((plot) => plot.draw()); this.later(); });
    addEventListener("keydown", (event) => {
      if (event.target.closest("input, select, button")) return;
      const frame = indexOf(this.times, this.now + 1e-6);
      if (event.key === " ") this.play(!this.playing);
      else if (event.key === "ArrowRight") this.goTo(this.times[Math.min(frame + 1, this.times.length - 1)]);
      else if (event.key === "ArrowLeft") this.goTo(this.times[Math.max(frame - 1, 0)]);
      else return;
      event.preventDefault();
    });
  }

  theme(dark) {
    document.documentElement.classList.toggle("dark", dark);
    if (this.scene) this.scene.dark = dark;
    this.plots.forEach((plot) => plot.draw());
    this.later();
  }

  select(row) {
    this.row = row;
    if (this.scene) this.scene.row = row;
    const world = this.run.scene.worlds[row];
    this.own = this.run.marks.filter((mark) => mark[2] === world);
    $("marks").replaceChildren(...this.own.map(([time, kind, , text]) => {
      const mark = make("button", SIGNS[kind], kind);
      mark.type = "button";
      mark.title = `${kind} at ${time.toFixed(3)} s: ${text}`;
      mark.style.left = `${100 * time / this.end}%`;
      mark.addEventListener("click", () => this.goTo(time));
      return mark;
    }));
    this.plots.forEach((plot) => { plot.row = row; plot.draw(); });
    this.goTo(this.now);
  }

  play(on) {
    if (on && this.now >= this.end) this.goTo(0);
    this.playing = on;
    this.last = performance.now();
    $("play").textContent = on ? "❚❚" : "▶";
    if (on) this.later();
  }

  goTo(time) {
    this.now = Math.min(Math.max(time, 0), this.end);
    this.later();
  }

  later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => this.show());
  }

  show() {
    this.waiting = false;
    if (this.playing) {
      const now = performance.now();
      this.now = Math.min(this.now + Number($("speed").value) * (now - this.last) / 1000, this.end);
      this.last = now;
      if (this.now >= this.end) this.play(false);
    }
    $("time").value = this.now;
    $("clock").textContent = `${this.now.toFixed(2)} / ${this.end.toFixed(2)} s`;
    const before = this.own.filter((mark) => mark[0] <= this.now + 1e-6).pop();
    $("happened").textContent = before ? `${SIGNS[before[1]]} ${before[0].toFixed(3)} s: ${before[3]}` : "";
    if (this.scene) {
      this.scene.frame = indexOf(this.times, this.now + 1e-6);
      if ($("follow").checked) this.scene.follow();
      this.scene.draw();
    }
    this.plots.forEach((plot) => plot.at(this.now));
    document.body.dataset.frame = this.scene ? this.scene.frame : -1;
    if (this.playing) this.later();
  }
}

function facts(run) {
  document.title = run.title;
  $("title").textContent = run.title;
  $("about").textContent = run.about;
  $("command").textContent = run.command;
  const marks = run.marks.map(([time, kind, world, text]) => [`${time.toFixed(3)} s`, `${SIGNS[kind]} ${kind}`, String(world), text]);
  const shown = marks.slice(0, 200), rest = marks.length - shown.length + run.left_out;
  $("list").append(marks.length ? table(["time", "mark", "world", "description"], shown) : make("p", "No resets, divergences, events or writes."));
  if (rest) $("list").append(make("p", `and ${rest} more`));
  $("contracts").append(table(["column", "component", "unit", "axes", "point"], run.columns.flatMap((column) => {
    const same = column.contracts.every((c) => c.join() === column.contracts[0].join());
    const rows = same ? [[column.names.length > 1 ? `all ${column.names.length}` : "", ...column.contracts[0]]] : column.contracts.map((c, k) => [column.names[k], ...c]);
    return rows.map((row) => [column.name, ...row]);
  })));
  for (const [title, rows] of Object.entries(run.tables)) {
    if (!rows.length) continue;
    const part = make("details");
    part.open = title !== "Settings";
    part.append(make("summary", title), table(null, rows));
    $("tables").append(part);
  }
}

unpacked().then(({ run, array }) => {
  facts(run);
  const player = new Player(run, array);
  player.theme(matchMedia("(prefers-color-scheme: dark)").matches);
  player.show();
  document.body.dataset.opened = Math.round(performance.now());
}).catch((error) => {
  $("title").textContent = "This page cannot be read";
  $("about").textContent = String(error.message || error);
});
