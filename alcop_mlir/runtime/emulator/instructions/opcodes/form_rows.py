"""The forms of each opcode: which modifiers it takes, and which of them together.

A row is `opcodes : groups`. `a|b` takes one of the words, `a?` one or none; a number of
groups is a row, `<name>` is a group of `GROUPS`. Words stand in the PTX ISA's order,
which only types, spaces and layouts have to keep. What ptxas takes for a target is in
the rows, also what the emulator does not run.
"""

from __future__ import annotations

from collections.abc import Iterable


def _shapes(columns: Iterable[int], k: int) -> str:
    """The shapes of wgmma with so many columns."""
    return "|".join(f"m64n{n}k{k}" for n in columns)


GROUPS = {
    "int": "s16|u16|s32|u32|s64|u64",
    "word": "s32|u32",
    "words": "s32|u32|s64|u64",
    "bits": "b16|b32|b64",
    "halves": "f16|f16x2|bf16|bf16x2",
    "any": "b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64",
    "typed": "b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64",
    "number": "u8|u16|u32|u64|s8|s16|s32|s64",
    "float": "f16|bf16|f32|f64",
    "round": "rn|rz|rm|rp",
    "whole": "rni|rzi|rmi|rpi",
    "compare": "eq|ne|lt|le|gt|ge",
    "compared": "eq|ne|lt|le|gt|ge|lo|ls|hi|hs",
    "ordered": "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan",
    "logic": "and|or|xor",
    "most": "add|min|max",
    "shared": "shared|shared::cta",
    "cluster": "shared|shared::cta|shared::cluster",
    "scope": "cta|cluster|gpu|sys",
    "L1": "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last"
    "|L1::no_allocate",
    "layout": "row|col",
    "shape": "m16n16k16|m8n32k16|m32n8k16",
    "byte": "s8|u8",
    "four": "s4|u4",
    "fp8": "e4m3|e5m2",
    "half": "f16|f32",
    "space": "const|local|param|param::entry|param::func|global|shared|shared::cta"
    "|shared::cluster",
    "stored": "local|param|param::func|global|shared|shared::cta|shared::cluster",
    "prefetch": "L2::64B|L2::128B|L2::256B",
    "evict": "L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged",
    "order": "relaxed|acquire|release|acq_rel",
    "fold": "add|min|max|inc|dec|and|or|xor",
    "sp": "sp|sp::ordered_metadata",
    "bytes": "mbarrier::complete_tx::bytes",
    "rank": "1d|2d|3d|4d|5d",
    "into": "tile|im2col|tile::gather4|im2col::w|im2col::w::128",
    "out": "tile|im2col_no_offs|tile::scatter4",
    "many": "multicast::cluster",
    "maps": "tensormap::generic",
    "hint": "L2::cache_hint",
    "field": "rank|box_dim|global_dim|element_stride|elemtype|swizzle_mode|fill_mode"
    "|interleave_layout",
    **{f"m64k{k}": _shapes(range(8, 257, 8), k) for k in (8, 16, 32, 64)},
    **{f"m64i{k}": _shapes((8, 24, *range(16, 257, 16)), k) for k in (32, 64, 256)},
}

ROWS = """
add sub : <int>
add sub : sat s32
add sub : cc <words>
addc subc : cc? <words>
mul : lo|hi <int>
mul : wide s16|u16|s32|u32
mad : lo|hi <int>
mad : wide s16|u16|s32|u32
mad : hi sat s32
mad madc : lo|hi cc? <words>
mul24 : lo|hi <word>
mad24 : lo|hi <word>
mad24 : hi sat s32
sad div rem min max : <int>
min max : relu s32
min max : relu? s16x2
min max add : u16x2
add : s16x2
abs neg : s16|s32|s64
popc clz brev bfi : b32|b64
bfind : shiftamt? <words>
fns : b32
bfe : <words>
szext : clamp|wrap <word>
bmsk : clamp|wrap b32
dp4a : <word> <word>
dp2a : lo|hi <word> <word>

testp : finite|infinite|number|notanumber|normal|subnormal f32|f64
copysign : f32|f64
add sub mul : <round>? ftz? sat? f32
add sub mul : <round>? f64
fma mad : <round> ftz? sat? f32
fma mad : <round> f64
div : approx|full|rn|rz|rm|rp ftz? f32
div : <round> f64
abs neg : ftz? f32
abs neg : f64
min max : ftz? NaN? f32
min max : ftz? NaN? xorsign abs f32
min max : f64
rcp sqrt : approx|rn|rz|rm|rp ftz? f32
rcp sqrt : <round> f64
rcp rsqrt : approx ftz f64
rsqrt : approx ftz? f32|f64
sin cos lg2 ex2 : approx ftz? f32
tanh : approx f32
add sub mul : rn? ftz? sat? f16|f16x2
add sub mul : rn? bf16|bf16x2
add sub mul : <round>? ftz? f32x2
fma : rn ftz? sat? f16|f16x2
fma : rn ftz? relu? f16|f16x2
fma : rn relu? bf16|bf16x2
fma : rn oob relu? <halves>
fma : <round> ftz? f32x2
abs neg : ftz? f16|f16x2
abs neg : bf16|bf16x2
min max : ftz? NaN? f16|f16x2
min max : ftz? NaN? xorsign abs f16|f16x2
min max : NaN? bf16|bf16x2
min max : NaN? xorsign abs bf16|bf16x2
tanh : approx <halves>
ex2 : approx f16|f16x2
ex2 : approx ftz bf16|bf16x2

set : eq|ne <logic>? u32|s32|f32 <bits>
set : <compare> <logic>? u32|s32|f32 s16|s32|s64
set : <compared> <logic>? u32|s32|f32 u16|u32|u64
set : <ordered> <logic>? ftz? u32|s32|f32 f32
set : <ordered> <logic>? u32|s32|f32 f64
set : eq|ne <logic>? f16|bf16 <bits>
set : <compare> <logic>? f16|bf16 s16|s32|s64
set : <compared> <logic>? f16|bf16 u16|u32|u64
set : <ordered> <logic>? ftz? f16 f16|f32
set : <ordered> <logic>? f16 f64
set : <ordered> <logic>? bf16 <float>
set : <ordered> <logic>? ftz? u16|s16|u32|s32 f16
set : <ordered> <logic>? u16|s16|u32|s32 bf16
set : <ordered> <logic>? ftz? f16x2|u32|s32 f16x2
set : <ordered> <logic>? bf16x2|u32|s32 bf16x2
setp : eq|ne <logic>? <bits>
setp : <compare> <logic>? s16|s32|s64
setp : <compared> <logic>? u16|u32|u64
setp : <ordered> <logic>? ftz? f16|f16x2|f32
setp : <ordered> <logic>? bf16|bf16x2|f64
selp : <typed>
slct : <typed> s32
slct : ftz? <typed> f32

and or xor not : pred|<bits>
cnot : <bits>
lop3 : and|or? b32
shf : l|r clamp|wrap b32
shl shr : <bits>
shr : <int>
prmt : b32 f4e|b4e|rc8|ecl|ecr|rc16?

mov : pred|<typed>|b128
mov : v2|v4 <typed>
shfl : sync up|down|bfly|idx b32
ld : weak? <space>? ca|cg|cs|lu|cv? v2|v4? <any>|b128
ld : weak? global? ca|cg|cs|lu|cv|<L1>? <hint>? <prefetch>? v2|v4? <any>|b128
ld : global nc ca|cg|cs|<L1>? <hint>? <prefetch>? v2|v4? <any>|b128
ld : volatile <stored>? v2|v4? <any>|b128
ld : volatile global? <prefetch>? v2|v4? <any>|b128
ld : relaxed|acquire <scope> <cluster>? v2|v4? <any>|b128
ld : relaxed|acquire <scope> global? <L1>? <hint>? <prefetch>? v2|v4? <any>|b128
ld : mmio relaxed sys global? v2|v4? <any>|b128
ldu : global? v2|v4? <any>|b128
st : weak? <stored>? wb|cg|cs|wt? v2|v4? <any>|b128
st : weak? global? wb|cg|cs|wt|<L1>? <hint>? v2|v4? <any>|b128
st : volatile <stored>? v2|v4? <any>|b128
st : relaxed|release <scope> <cluster>? v2|v4? <any>|b128
st : relaxed|release <scope> global? <L1>? <hint>? v2|v4? <any>|b128
st : mmio relaxed sys global? v2|v4? <any>|b128
st : async weak? shared::cluster? <bytes> v2|v4? b32|b64|u32|u64|s32|s64|f32|f64
prefetch : global|local? L1|L2
prefetch : global? L2::evict_last|L2::evict_normal
prefetch : param|const? tensormap
prefetchu : L1
applypriority : global? L2::evict_normal
discard : global? L2
createpolicy : fractional <evict> L2::evict_unchanged|L2::evict_first? b64
createpolicy : range global? <evict> L2::evict_unchanged|L2::evict_first? b64
createpolicy : cvt L2 b64
isspacep : const|global|local|param|param::entry|param::func|<cluster>
cvta : to? const|global|local|param|param::entry|<cluster> u32|u64
mapa getctarank : shared::cluster? u32|u64|s32|s64
cvt : <number> <number>
cvt : sat u8 u16|u32|u64|s8|s16|s32|s64
cvt : sat u16 u32|u64|s8|s16|s32|s64
cvt : sat u32 u64|s8|s16|s32|s64
cvt : sat u64 s8|s16|s32|s64
cvt : sat s8 u8|u16|u32|u64|s16|s32|s64
cvt : sat s16 u16|u32|u64|s32|s64
cvt : sat s32 u32|u64|s64
cvt : sat s64 u64
cvt : <whole> sat? <number> f16|f64
cvt : <whole> ftz? sat? <number> f32
cvt : <whole> <int> bf16
cvt : <round> sat? f16|f64 <number>
cvt : <round> ftz? sat? f32 <number>|f64
cvt : <round> bf16 <int>|f64
cvt : <round> sat? f16 f64
cvt : <round> ftz? sat? f16 f32
cvt : <round> ftz? bf16 f32
cvt : <round>? f16 bf16
cvt : <round>? bf16 f16
cvt : <round>? f64 bf16
cvt : <round>? ftz? f32 bf16
cvt : ftz? sat? f32 f16
cvt : ftz? sat? f64 f32
cvt : sat? f64 f16
cvt : <whole>? sat? f16 f16
cvt : <whole>? sat? f64 f64
cvt : <whole>? bf16 bf16
cvt : <whole>? ftz? sat? f32 f32
cvt : rn|rz relu? satfinite? f16|bf16|f16x2|bf16x2 f32
cvt : rna satfinite? tf32 f32
cvt : rn|rz relu? tf32 f32
cvt : rn satfinite relu? e4m3x2|e5m2x2 f32|f16x2
cvt : rn relu? f16x2 e4m3x2|e5m2x2
cvt : pack sat u16|s16 s32
cvt : pack sat u8|s8|u4|s4|u2|s2 s32 b32
cp : async ca|cg <shared> global <hint>? <prefetch>?
cp : async commit_group|wait_all|wait_group
cp : async mbarrier arrive noinc? <shared>? b64
cp : async bulk <cluster> global <bytes> <many>? <hint>?
cp : async bulk shared::cluster shared::cta <bytes>
cp : async bulk global shared::cta bulk_group <hint>?
cp : async bulk prefetch L2 global <hint>?
cp : reduce async bulk shared::cluster shared::cta <bytes> add u32|s32|u64
cp : reduce async bulk shared::cluster shared::cta <bytes> min|max <word>
cp : reduce async bulk shared::cluster shared::cta <bytes> inc|dec u32
cp : reduce async bulk shared::cluster shared::cta <bytes> <logic> b32
cp : reduce async bulk global shared::cta bulk_group <hint>? add u32|s32|u64|f32|f64
cp : reduce async bulk global shared::cta bulk_group <hint>? add noftz f16|bf16
cp : reduce async bulk global shared::cta bulk_group <hint>? min|max <words>|f16|bf16
cp : reduce async bulk global shared::cta bulk_group <hint>? inc|dec u32
cp : reduce async bulk global shared::cta bulk_group <hint>? <logic> b32|b64
cp : async bulk tensor <rank> <cluster> global <into>? <bytes> <many>? <hint>?
cp : async bulk tensor <rank> global shared::cta <out>? bulk_group <hint>?
cp : reduce async bulk tensor <rank> global shared::cta <fold> <out>? bulk_group <hint>?
cp : async bulk prefetch tensor <rank> L2 global <into>? <hint>?
cp : async bulk commit_group
cp : async bulk wait_group read?
tensormap : replace tile global_address|global_stride global|shared::cta? b1024 b64
tensormap : replace tile <field> global|shared::cta? b1024 b32
tensormap : cp_fenceproxy global shared::cta <maps> release <scope> sync aligned

bra ret call : uni?
exit :
brx : idx uni?

bar : cta? sync|arrive
bar : cta? red popc u32
bar : cta? red and|or pred
bar : warp sync
barrier : cta? sync|arrive aligned?
barrier : cta? red popc aligned? u32
barrier : cta? red and|or aligned? pred
barrier : cluster arrive release|relaxed? aligned?
barrier : cluster wait acquire? aligned?
membar : cta|gl|sys
fence : sc|acq_rel? <scope>
fence : acquire|release <scope>
fence : proxy async|alias
fence : proxy async global|<cluster>
fence : proxy tensormap::generic acquire|release <scope>
fence : proxy async::generic acquire sync_restrict::shared::cluster cluster
fence : proxy async::generic release sync_restrict::shared::cta cluster
fence : acquire sync_restrict::shared::cluster cluster
fence : release sync_restrict::shared::cta cluster
fence : mbarrier_init release cluster
atom : <order>? <scope>? <cluster>|global? exch <hint>? b32|b64|b128
atom : <order>? <scope>? <cluster>|global? cas <hint>? b16|b32|b64|b128
atom : <order>? <scope>? <cluster>|global? <logic> <hint>? b32|b64
red : relaxed|release? <scope>? <cluster>|global? <logic> <hint>? b32|b64
atom : <order>? <scope>? <cluster>|global? add <hint>? u32|s32|u64|f32|f64
red : relaxed|release? <scope>? <cluster>|global? add <hint>? u32|s32|u64|f32|f64
atom : <order>? <scope>? <cluster>|global? inc|dec <hint>? u32
red : relaxed|release? <scope>? <cluster>|global? inc|dec <hint>? u32
atom : <order>? <scope>? <cluster>|global? min|max <hint>? <words>
red : relaxed|release? <scope>? <cluster>|global? min|max <hint>? <words>
atom : <order>? <scope>? <cluster>|global? add noftz <hint>? <halves>
red : relaxed|release? <scope>? <cluster>|global? add noftz <hint>? <halves>
atom : <order>? <scope>? global? add <hint>? v2|v4 f32
red : relaxed|release? <scope>? global? add <hint>? v2|v4 f32
atom : <order>? <scope>? global? <most> noftz <hint>? v2|v4|v8 f16|bf16
red : relaxed|release? <scope>? global? <most> noftz <hint>? v2|v4|v8 f16|bf16
atom : <order>? <scope>? global? <most> noftz <hint>? v2|v4 f16x2|bf16x2
red : relaxed|release? <scope>? global? <most> noftz <hint>? v2|v4 f16x2|bf16x2
red : async relaxed cluster shared::cluster <bytes> inc|dec|min|max|add u32
red : async relaxed cluster shared::cluster <bytes> min|max|add s32
red : async relaxed cluster shared::cluster <bytes> add u64
red : async relaxed cluster shared::cluster <bytes> <logic> b32
vote : sync all|any|uni pred
vote : sync ballot b32
match : any|all sync b32|b64
activemask : b32
redux : sync <most> <word>
redux : sync <logic> b32
elect : sync
mbarrier : init|inval <shared>? b64
mbarrier : arrive|arrive_drop <cluster>? b64
mbarrier : arrive|arrive_drop release|relaxed cta|cluster <cluster>? b64
mbarrier : arrive|arrive_drop noComplete <shared>? b64
mbarrier : arrive|arrive_drop noComplete release cta <shared>? b64
mbarrier : arrive|arrive_drop expect_tx <cluster>? b64
mbarrier : arrive|arrive_drop expect_tx release|relaxed cta|cluster <cluster>? b64
mbarrier : expect_tx|complete_tx <cluster>? b64
mbarrier : expect_tx|complete_tx relaxed cta|cluster <cluster>? b64
mbarrier : test_wait|try_wait parity? <shared>? b64
mbarrier : test_wait|try_wait parity? acquire|relaxed cta|cluster <shared>? b64
mbarrier : pending_count b64

wmma : load a|b sync aligned <layout> <shape> <cluster>|global? f16|<byte>|bf16
wmma : load a|b sync aligned <layout> m16n16k8 <cluster>|global? tf32
wmma : load a|b sync aligned <layout> m8n8k4 <cluster>|global? f64
wmma : load a sync aligned row m8n8k32 <cluster>|global? <four>
wmma : load a sync aligned row m8n8k128 <cluster>|global? b1
wmma : load b sync aligned col m8n8k32 <cluster>|global? <four>
wmma : load b sync aligned col m8n8k128 <cluster>|global? b1
wmma : load c sync aligned <layout> <shape> <cluster>|global? f16|f32|s32
wmma : load c sync aligned <layout> m16n16k8 <cluster>|global? f32
wmma : load c sync aligned <layout> m8n8k4 <cluster>|global? f64
wmma : load c sync aligned <layout> m8n8k32|m8n8k128 <cluster>|global? s32
wmma : store d sync aligned <layout> <shape> <cluster>|global? f16|f32|s32
wmma : store d sync aligned <layout> m16n16k8 <cluster>|global? f32
wmma : store d sync aligned <layout> m8n8k4 <cluster>|global? f64
wmma : store d sync aligned <layout> m8n8k32|m8n8k128 <cluster>|global? s32
wmma : mma sync aligned <layout> <layout> <shape> <half> <half> satfinite?
wmma : mma sync aligned <layout> <layout> <shape> s32 s8 s8 s32 satfinite?
wmma : mma sync aligned <layout> <layout> <shape> s32 u8 u8 s32 satfinite?
wmma : mma sync aligned <layout> <layout> <shape> f32 bf16 bf16 f32
wmma : mma sync aligned <layout> <layout> m16n16k8 f32 tf32 tf32 f32
wmma : mma sync aligned <layout> <layout> m8n8k4 <round>? f64 f64 f64 f64
wmma : mma sync aligned row col m8n8k32 s32 s4 s4 s32 satfinite?
wmma : mma sync aligned row col m8n8k32 s32 u4 u4 s32 satfinite?
wmma : mma xor|and popc sync aligned row col m8n8k128 s32 b1 b1 s32
mma : sync aligned m8n8k4 <layout> <layout> f16 f16 f16 f16
mma : sync aligned m8n8k4 <layout> <layout> f32 f16 f16 <half>
mma : sync aligned m16n8k8|m16n8k16 row col f16 f16 f16 f16
mma : sync aligned m16n8k8|m16n8k16 row col f32 f16 f16 f32
mma : sync aligned m16n8k8|m16n8k16 row col f32 bf16 bf16 f32
mma : sync aligned m16n8k4|m16n8k8 row col f32 tf32 tf32 f32
mma : sync aligned m8n8k4|m16n8k4|m16n8k8|m16n8k16 row col <round>? f64 f64 f64 f64
mma : sync aligned m8n8k16|m16n8k16|m16n8k32 row col satfinite? s32 <byte> <byte> s32
mma : sync aligned m8n8k32|m16n8k32|m16n8k64 row col satfinite? s32 <four> <four> s32
mma : sync aligned m8n8k128|m16n8k128|m16n8k256 row col s32 b1 b1 s32 xor|and popc
mma : sync aligned m16n8k16|m16n8k32 row col f16 <fp8> <fp8> f16
mma : sync aligned m16n8k16|m16n8k32 row col f32 <fp8> <fp8> f32
mma : <sp> sync aligned m16n8k16|m16n8k32 row col f16 f16 f16 f16
mma : <sp> sync aligned m16n8k16|m16n8k32 row col f32 f16 f16 f32
mma : <sp> sync aligned m16n8k16|m16n8k32 row col f32 bf16 bf16 f32
mma : <sp> sync aligned m16n8k8|m16n8k16 row col f32 tf32 tf32 f32
mma : <sp> sync aligned m16n8k32|m16n8k64 row col satfinite? s32 <byte> <byte> s32
mma : <sp> sync aligned m16n8k64|m16n8k128 row col satfinite? s32 <four> <four> s32
mma : <sp> sync aligned m16n8k64 row col f16 <fp8> <fp8> f16
mma : <sp> sync aligned m16n8k64 row col f32 <fp8> <fp8> f32
ldmatrix : sync aligned m8n8 x1|x2|x4 trans? <shared>? b16
stmatrix : sync aligned m8n8 x1|x2|x4 trans? <shared>? b16
movmatrix : sync aligned m8n8 trans b16

wgmma : fence|commit_group|wait_group sync aligned
wgmma : mma_async <sp>? sync aligned <m64k16>|<m64k32> <half> f16 f16
wgmma : mma_async <sp>? sync aligned <m64k16>|<m64k32> f32 bf16 bf16
wgmma : mma_async <sp>? sync aligned <m64k8>|<m64k16> f32 tf32 tf32
wgmma : mma_async <sp>? sync aligned <m64k32>|<m64k64> <half> <fp8> <fp8>
wgmma : mma_async sync aligned <m64i32> satfinite? s32 <byte> <byte>
wgmma : mma_async sync aligned <m64i256> s32 b1 b1 and|xor popc
wgmma : mma_async <sp> sync aligned <m64i64> satfinite? s32 <byte> <byte>

alloca stacksave stackrestore : u32|u64

vadd vsub vabsdiff vmin vmax : <word> <word> <word> sat? <most>?
vshl vshr : <word> <word> u32 sat? clamp|wrap <most>?
vmad : <word> <word> <word> po? sat? shr7|shr15?
vset : <word> <word> <compare> <most>?
vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 : <word> <word> <word> sat|add?
vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4 : <word> <word> <word> sat|add?
vset2 vset4 : <word> <word> <compare> add?

nanosleep : u32
setmaxnreg : inc|dec sync aligned u32
griddepcontrol : launch_dependents|wait
pmevent : mask?
brkpt trap :
"""
