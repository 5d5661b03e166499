// What runs on the graphics card: the water, and everything that shines in it.

/** The water is a mesh whose corners have a colour: soft, and cheap on the weakest machine. */
export const WATER_VERTEX = `#version 300 es
uniform vec2 centre;
uniform vec2 span;
uniform float time;
uniform vec2 own;
uniform vec3 tint;
uniform float size;
in vec2 corner;
out vec3 colour;

float wave(vec2 p, float t) {
  return sin(p.x * 1.3 + t + sin(p.y * 0.9 - t * 0.7)) * sin(p.y * 1.7 - t * 0.6 + sin(p.x * 0.8 + t * 0.5));
}

void main() {
  vec2 at = centre + corner * span;
  float t = time * 0.35;
  float swell = wave(at * 0.012, t) * 0.5 + wave(at * 0.031 + 7.0, t * 1.6) * 0.3 + wave(at * 0.07, -t * 2.0) * 0.2;
  float depth = at.y / size;
  vec3 water = mix(vec3(0.012, 0.098, 0.150), vec3(0.040, 0.030, 0.125), depth);
  water += vec3(0.006, 0.058, 0.082) * max(0.0, swell + 0.3) * (1.4 - depth);
  float near = length(at - own);
  vec3 shine = mix(vec3(0.10, 0.42, 0.60), tint, 0.35);
  water += shine * (0.16 * exp(-near * near / 8000.0) + 0.06 * exp(-near / 120.0));
  float out_by = max(max(-at.x, at.x - size), max(-at.y, at.y - size));
  water *= 1.0 - smoothstep(-10.0, 60.0, out_by);
  float vignette = dot(corner, corner);
  colour = water * (1.1 - 0.36 * vignette);
  gl_Position = vec4(corner.x, -corner.y, 0.0, 1.0);
}`;

export const WATER_FRAGMENT = `#version 300 es
precision highp float;
in vec3 colour;
out vec4 result;

void main() {
  // A grain finer than one step of colour, or the dark would show bands.
  float grain = fract(sin(dot(gl_FragCoord.xy, vec2(12.9898, 78.233))) * 43758.5453);
  result = vec4(colour + (grain - 0.5) / 160.0, 1.0);
}`;

export const SPRITE_VERTEX = `#version 300 es
uniform vec2 centre;
uniform vec2 span;
in vec2 corner;
in vec4 place;
in vec4 colour;
in vec2 look;
out vec2 at;
out vec4 tint;
flat out float shape;
flat out float phase;

void main() {
  // Fish are longer than high; all else is round.
  vec2 local = corner * vec2(1.0, look.x < 0.5 ? 0.62 : 1.0);
  float c = cos(place.z), s = sin(place.z);
  vec2 turned = vec2(local.x * c - local.y * s, local.x * s + local.y * c) * place.w;
  vec2 seen = (place.xy + turned - centre) / span;
  gl_Position = vec4(seen.x, -seen.y, 0.0, 1.0);
  at = local;
  tint = colour;
  shape = look.x;
  phase = look.y;
}`;

/** Shapes: 0 a fish, 1 a glow, 2 a spark, 3 a ring, 4 a light. Everything adds to what is there. */
export const SPRITE_FRAGMENT = `#version 300 es
precision highp float;
uniform float time;
in vec2 at;
in vec4 tint;
flat in float shape;
flat in float phase;
out vec4 result;

vec3 fish() {
  float tail = 0.5 - 0.5 * at.x;
  float y = at.y - sin(at.x * 2.6 + phase) * 0.17 * tail * tail;
  float along = (at.x - 0.12) / 0.7;
  float half_height = 0.235 * sqrt(max(0.0, 1.0 - along * along)) * (1.0 + 0.25 * along);
  float body = 1.0 - smoothstep(half_height - 0.07, half_height + 0.03, abs(y));
  body *= step(abs(along), 1.0);
  float fan = clamp((-0.42 - at.x) / 0.5, 0.0, 1.0);
  float spread = abs(y) / (0.04 + 0.36 * fan);
  float fin = (1.0 - smoothstep(0.75, 1.05, spread)) * step(0.02, fan);
  // Forked: it ends sooner in the middle.
  fin *= 1.0 - smoothstep(0.5, 0.95, fan + 0.34 * (1.0 - min(spread, 1.0)));
  float halo = exp(-dot(at, at) * 4.5) * 0.34;
  float back = exp(-pow((y + 0.05) * 13.0, 2.0)) * body;
  vec3 lit = tint.rgb * (body * (0.42 + 0.38 * at.x) + fin * 0.42 + halo);
  float eye = exp(-dot(vec2(at.x - 0.56, y + 0.05), vec2(at.x - 0.56, y + 0.05)) * 900.0);
  return lit + (tint.rgb * 0.5 + 0.25) * back * 0.42 + vec3(0.8) * eye;
}

vec3 light(float far) {
  float angle = atan(at.y, at.x);
  float rays = 0.5 + 0.5 * sin(angle * 7.0 + phase * 0.6) * sin(angle * 4.0 - phase * 0.45);
  float fade = 1.0 - smoothstep(0.72, 1.0, far);
  float core = exp(-far * far * 150.0);
  float corona = exp(-far * 6.5) * (0.75 + 0.45 * rays);
  return vec3(1.0) * core * 1.1 + tint.rgb * (corona * 1.05 + exp(-far * 2.8) * 0.09) * fade;
}

void main() {
  float far = length(at);
  vec3 lit;
  if (shape < 0.5) lit = fish();
  else if (shape < 1.5) lit = tint.rgb * exp(-far * far * 4.0) * (1.0 - smoothstep(0.8, 1.0, far));
  else if (shape < 2.5) lit = (tint.rgb + 0.25) * pow(max(0.0, 1.0 - far), 3.0);
  else if (shape < 3.5) lit = tint.rgb * (1.0 - smoothstep(0.0, 0.07, abs(far - 0.9)));
  else lit = light(far);
  result = vec4(lit * tint.a, 0.0);
}`;
