// Kernels that use CUB's block and warp primitives; see cuda_programs.py.
// clang-format off
#include <cub/cub.cuh>
#include <cub/block/block_shuffle.cuh>
struct Minus{ __device__ int operator()(int a,int b) const {return a-b;} };
struct Differ{ __device__ bool operator()(int a,int b) const {return a!=b;} };
#define G extern "C" __global__ void
template<class T,int B,int I,cub::BlockReduceAlgorithm A> __device__ void red(const T*x,T*y,int n){ using R=cub::BlockReduce<T,B,A>; __shared__ typename R::TempStorage s; T v[I]; cub::LoadDirectBlocked(threadIdx.x,x+blockIdx.x*B*I,v,n-blockIdx.x*B*I,T(0)); T t=R(s).Sum(v); if(threadIdx.x==0) y[blockIdx.x]=t; }
G red_rake(const int*x,int*y,int n){red<int,128,4,cub::BLOCK_REDUCE_RAKING>(x,y,n);}
G red_rake_comm(const int*x,int*y,int n){red<int,128,4,cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>(x,y,n);}
G red_warp(const int*x,int*y,int n){red<int,128,4,cub::BLOCK_REDUCE_WARP_REDUCTIONS>(x,y,n);}
G red_warp_f(const float*x,float*y,int n){red<float,128,4,cub::BLOCK_REDUCE_WARP_REDUCTIONS>(x,y,n);}
G red_warp_d(const double*x,double*y,int n){red<double,64,3,cub::BLOCK_REDUCE_WARP_REDUCTIONS>(x,y,n);}
G red_partial(const int*x,int*y,int n){ using R=cub::BlockReduce<int,128>; __shared__ typename R::TempStorage s; int i=blockIdx.x*128+threadIdx.x; int v=i<n?x[i]:99999; int t=R(s).Sum(v,min(128,n-(int)blockIdx.x*128)); if(threadIdx.x==0) y[blockIdx.x]=t; }
template<class T,int B,int I,cub::BlockScanAlgorithm A> __device__ void scan(const T*x,T*y,int n){ using R=cub::BlockScan<T,B,A>; __shared__ typename R::TempStorage s; T v[I]; int o=blockIdx.x*B*I; cub::LoadDirectBlocked(threadIdx.x,x+o,v,n-o,T(0)); R(s).InclusiveSum(v,v); cub::StoreDirectBlocked(threadIdx.x,y+o,v,n-o);}
G scan_rake(const int*x,int*y,int n){scan<int,128,4,cub::BLOCK_SCAN_RAKING>(x,y,n);}
G scan_rake_mem(const int*x,int*y,int n){scan<int,128,4,cub::BLOCK_SCAN_RAKING_MEMOIZE>(x,y,n);}
G scan_warp(const int*x,int*y,int n){scan<int,128,4,cub::BLOCK_SCAN_WARP_SCANS>(x,y,n);}
G scan_f(const float*x,float*y,int n){scan<float,96,3,cub::BLOCK_SCAN_WARP_SCANS>(x,y,n);}
template<class T,int B,int I> __device__ void rsort(const T*x,T*y,int n){ using R=cub::BlockRadixSort<T,B,I>; __shared__ typename R::TempStorage s; T v[I]; int o=blockIdx.x*B*I; cub::LoadDirectBlocked(threadIdx.x,x+o,v); R(s).Sort(v); cub::StoreDirectBlocked(threadIdx.x,y+o,v);}
G sort_i(const int*x,int*y,int n){rsort<int,128,4>(x,y,n);}
G sort_u(const unsigned*x,unsigned*y,int n){rsort<unsigned,64,8>(x,y,n);}
G sort_f(const float*x,float*y,int n){rsort<float,128,4>(x,y,n);}
G sort_l(const long long*x,long long*y,int n){rsort<long long,64,4>(x,y,n);}
struct Less{ __device__ bool operator()(int a,int b) const {return a<b;} };
G msort(const int*x,int*y,int n){ using R=cub::BlockMergeSort<int,128,4>; __shared__ typename R::TempStorage s; int v[4]; int o=blockIdx.x*512; int valid=min(512,n-o); cub::LoadDirectBlocked(threadIdx.x,x+o,v,valid,2147483647); R(s).Sort(v,Less(),valid,2147483647); cub::StoreDirectBlocked(threadIdx.x,y+o,v,valid);}
G wmsort(const int*x,int*y,int n){ using R=cub::WarpMergeSort<int,4,32>; __shared__ typename R::TempStorage s[4]; int v[4]; int o=blockIdx.x*512+(threadIdx.x/32)*128; cub::LoadDirectBlocked(threadIdx.x%32,x+o,v); R(s[threadIdx.x/32]).Sort(v,Less()); cub::StoreDirectBlocked(threadIdx.x%32,y+o,v);}
G hist_atomic(const unsigned char*x,unsigned*y,int n){ using R=cub::BlockHistogram<unsigned char,128,4,256,cub::BLOCK_HISTO_ATOMIC>; __shared__ typename R::TempStorage s; __shared__ unsigned h[256]; unsigned char v[4]; cub::LoadDirectBlocked(threadIdx.x,x+blockIdx.x*512,v); R(s).Histogram(v,h); __syncthreads(); for(int i=threadIdx.x;i<256;i+=128) atomicAdd(&y[i],h[i]); }
G hist_sort(const unsigned char*x,unsigned*y,int n){ using R=cub::BlockHistogram<unsigned char,128,4,256,cub::BLOCK_HISTO_SORT>; __shared__ typename R::TempStorage s; __shared__ unsigned h[256]; unsigned char v[4]; cub::LoadDirectBlocked(threadIdx.x,x+blockIdx.x*512,v); R(s).Histogram(v,h); __syncthreads(); for(int i=threadIdx.x;i<256;i+=128) atomicAdd(&y[i],h[i]); }
template<cub::BlockLoadAlgorithm L,cub::BlockStoreAlgorithm S> __device__ void io(const int*x,int*y,int n){ using A=cub::BlockLoad<int,128,4,L>; using B=cub::BlockStore<int,128,4,S>; __shared__ union{typename A::TempStorage a; typename B::TempStorage b;} s; int v[4]; int o=blockIdx.x*512; A(s.a).Load(x+o,v,min(512,n-o),0); __syncthreads(); for(int i=0;i<4;i++) v[i]=v[i]*2+threadIdx.x; B(s.b).Store(y+o,v,min(512,n-o)); }
G io_direct(const int*x,int*y,int n){io<cub::BLOCK_LOAD_DIRECT,cub::BLOCK_STORE_DIRECT>(x,y,n);}
G io_trans(const int*x,int*y,int n){io<cub::BLOCK_LOAD_TRANSPOSE,cub::BLOCK_STORE_TRANSPOSE>(x,y,n);}
G io_wtrans(const int*x,int*y,int n){io<cub::BLOCK_LOAD_WARP_TRANSPOSE,cub::BLOCK_STORE_WARP_TRANSPOSE>(x,y,n);}
G io_wts(const int*x,int*y,int n){io<cub::BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED,cub::BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED>(x,y,n);}
G io_vec(const int*x,int*y,int n){io<cub::BLOCK_LOAD_VECTORIZE,cub::BLOCK_STORE_VECTORIZE>(x,y,n);}
G io_striped(const int*x,int*y,int n){io<cub::BLOCK_LOAD_STRIPED,cub::BLOCK_STORE_STRIPED>(x,y,n);}
template<int W> __device__ void wred(const int*x,int*y){ using R=cub::WarpReduce<int,W>; __shared__ typename R::TempStorage s[128/W]; int i=blockIdx.x*128+threadIdx.x; int t=R(s[threadIdx.x/W]).Sum(x[i]); if(threadIdx.x%W==0) y[i/W]=t; }
G wred32(const int*x,int*y,int n){wred<32>(x,y);}
G wred16(const int*x,int*y,int n){wred<16>(x,y);}
G wred8(const int*x,int*y,int n){wred<8>(x,y);}
G wred5(const int*x,int*y,int n){ using R=cub::WarpReduce<int,5>; __shared__ typename R::TempStorage s; if(threadIdx.x<5){ int t=R(s).Sum(x[blockIdx.x*32+threadIdx.x]); if(threadIdx.x==0) y[blockIdx.x]=t; } }
G wscan(const int*x,int*y,int n){ using R=cub::WarpScan<int>; __shared__ typename R::TempStorage s[4]; int i=blockIdx.x*128+threadIdx.x; int v; R(s[threadIdx.x/32]).InclusiveSum(x[i],v); y[i]=v; }
G exch(const int*x,int*y,int n){ using R=cub::BlockExchange<int,128,4>; __shared__ typename R::TempStorage s; int v[4]; int o=blockIdx.x*512; cub::LoadDirectStriped<128>(threadIdx.x,x+o,v); R(s).StripedToBlocked(v,v); for(int i=0;i<4;i++) v[i]+=i; cub::StoreDirectBlocked(threadIdx.x,y+o,v);}
G adjdiff(const int*x,int*y,int n){ using R=cub::BlockAdjacentDifference<int,128>; __shared__ typename R::TempStorage s; int v[4],r[4]; int o=blockIdx.x*512; cub::LoadDirectBlocked(threadIdx.x,x+o,v); R(s).SubtractLeft(v,r,Minus()); cub::StoreDirectBlocked(threadIdx.x,y+o,r);}
G heads(const int*x,int*y,int n){ using R=cub::BlockDiscontinuity<int,128>; __shared__ typename R::TempStorage s; int v[4],r[4]; int o=blockIdx.x*512; cub::LoadDirectBlocked(threadIdx.x,x+o,v); R(s).FlagHeads(r,v,Differ()); cub::StoreDirectBlocked(threadIdx.x,y+o,r);}
G shuf(const int*x,int*y,int n){ using R=cub::BlockShuffle<int,128>; __shared__ typename R::TempStorage s; int i=blockIdx.x*128+threadIdx.x; int v=x[i],r=-1; R(s).Offset(v,r,1); y[i]=r; }
