// What runs on the graphics card: the water, and everything that shines in it.
//
// Shapes are painted once into an atlas and copied from there: machines without a graphics card run shaders too, and
// pay for each line of them at each pixel.

export const MOST_HALOS = 16;
export const FISH_FRAMES = 16;
export const ATLAS_WIDTH = 1024;
export const ATLAS_HEIGHT = 512;

/** The water is a mesh whose corners have a colour: soft, and cheap. */
export const WATER_VERTEX = `#version 300 es
uniform vec2 centre;
uniform vec2 span;
uniform float time;
uniform vec2 own;
uniform vec3 tint;
uniform float size;
uniform vec4 halos[${MOST_HALOS}];
uniform vec3 hues[${MOST_HALOS}];
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
  // Round each light the water glows: its place, how far that goes, and how strong it is.
  for (int index = 0; index < ${MOST_HALOS}; index++) {
    vec4 halo = halos[index];
    float far = length(at - halo.xy) / halo.z;
    water += hues[index] * halo.w * (0.12 * exp(-far * far * 2.2) + 0.035 * exp(-far * 1.2));
  }
  colour = water * (1.1 - 0.36 * dot(corner, corner));
  gl_Position = vec4(corner.x, -corner.y, 0.0, 1.0);
}`;

export const WATER_FRAGMENT = `#version 300 es
precision highp float;
in vec3 colour;
out vec4 result;

void main() {
  // A grain finer than one step of colour, or the dark would show bands.
  float grain = fract(52.9829189 * fract(dot(gl_FragCoord.xy, vec2(0.06711056, 0.00583715))));
  result = vec4(colour + (grain - 0.5) / 170.0, 1.0);
}`;

export const SPRITE_VERTEX = `#version 300 es
uniform vec2 centre;
uniform vec2 span;
in vec2 corner;
in vec4 place;
in vec4 colour;
in vec2 look;
out vec2 texel;
out vec4 tint;

void main() {
  bool is_fish = look.x < 0.5;
  // Fish are longer than high; all else is round.
  vec2 local = corner * vec2(1.0, is_fish ? 0.5 : 1.0);
  float c = cos(place.z), s = sin(place.z);
  vec2 turned = vec2(local.x * c - local.y * s, local.x * s + local.y * c) * place.w;
  vec2 seen = (place.xy + turned - centre) / span;
  gl_Position = vec4(seen.x, -seen.y, 0.0, 1.0);
  float frame = floor(mod(look.y / 6.2831853, 1.0) * ${FISH_FRAMES}.0);
  vec2 cell = is_fish ? vec2(mod(frame, 8.0), floor(frame / 8.0)) * 128.0 : vec2((look.x - 1.0) * 256.0, 256.0);
  float length = is_fish ? 128.0 : 256.0;
  texel = (cell + (local * 0.5 + 0.5) * length) / vec2(${ATLAS_WIDTH}.0, ${ATLAS_HEIGHT}.0);
  tint = colour;
}`;

/** Everything adds to what is there. */
export const SPRITE_FRAGMENT = `#version 300 es
precision mediump float;
uniform sampler2D atlas;
in vec2 texel;
in vec4 tint;
out vec4 result;

void main() {
  vec2 painted = texture(atlas, texel).rg * 2.0;
  result = vec4((tint.rgb * painted.r + painted.g) * tint.a, 0.0);
}`;

export const PAINT_VERTEX = `#version 300 es
in vec2 corner;
out vec2 at;

void main() {
  at = corner;
  gl_Position = vec4(corner, 0.0, 1.0);
}`;

/**
 * Paints one shape: 0 a fish, 1 a glow, 2 a spark, 3 a ring, 4 a light. Red is how much it has of its colour, green how
 * much white; both halved, since some is brighter than 1.
 */
export const PAINT_FRAGMENT = `#version 300 es
precision highp float;
uniform float shape;
uniform float phase;
in vec2 at;
out vec4 result;

vec2 fish() {
  float tail = 0.5 - 0.5 * at.x;
  float y = at.y - sin(at.x * 2.6 + phase) * 0.17 * tail * tail;
  float along = (at.x - 0.12) / 0.7;
  float half_height = 0.235 * sqrt(max(0.0, 1.0 - along * along)) * (1.0 + 0.25 * along);
  float body = (1.0 - smoothstep(half_height - 0.07, half_height + 0.03, abs(y))) * step(abs(along), 1.0);
  float fan = clamp((-0.42 - at.x) / 0.5, 0.0, 1.0);
  float spread = abs(y) / (0.04 + 0.36 * fan);
  float fin = (1.0 - smoothstep(0.75, 1.05, spread)) * step(0.02, fan);
  // Forked: it ends sooner in the middle.
  fin *= 1.0 - smoothstep(0.5, 0.95, fan + 0.34 * (1.0 - min(spread, 1.0)));
  float edge = (1.0 - smoothstep(0.6, 1.0, abs(at.x))) * (1.0 - smoothstep(0.25, 0.5, abs(at.y)));
  float halo = exp(-dot(at, at) * 4.5) * 0.36 * edge;
  float back = exp(-pow((y + 0.05) * 13.0, 2.0)) * body;
  vec2 eye = vec2(at.x - 0.56, y + 0.05);
  float tinted = body * (0.42 + 0.38 * at.x) + fin * 0.42 + halo + back * 0.21;
  return vec2(tinted, back * 0.105 + 0.8 * exp(-dot(eye, eye) * 900.0));
}

vec2 light(float far) {
  float angle = atan(at.y, at.x);
  float rays = 0.5 + 0.5 * sin(angle * 7.0 + 0.6) * sin(angle * 4.0 - 0.4);
  float fade = 1.0 - smoothstep(0.5, 1.0, far);
  return vec2(exp(-far * 4.8) * (0.78 + 0.55 * rays) * fade, exp(-far * far * 80.0));
}

void main() {
  float far = length(at);
  vec2 painted;
  if (shape < 0.5) painted = fish();
  else if (shape < 1.5) painted = vec2(exp(-far * far * 4.0) * (1.0 - smoothstep(0.7, 1.0, far)), 0.0);
  else if (shape < 2.5) painted = vec2(1.0, 0.25) * pow(max(0.0, 1.0 - far), 3.0);
  else if (shape < 3.5) painted = vec2(1.0 - smoothstep(0.0, 0.055, abs(far - 0.9)), 0.0);
  else painted = light(far);
  result = vec4(painted * 0.5, 0.0, 1.0);
}`;
