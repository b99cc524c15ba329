// Times of NCCL's own performance model. It is linked with src/graph/tuning.cc of a checkout, which it stands in for the
// rest of NCCL to. A line of stdin is a machine, its graphs and a call; the answer is the time of every algorithm and
// protocol in microseconds, negative where there is none. With -DSYMMETRIC and src/sym_kernels.cc the symmetric kernel,
// its SMs and its estimate follow. nccl_tuning.py compiles it and says what the columns are.

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core.h"
#if __has_include("device.h")
#include "device.h"
#else
#include "devcomm.h"
#endif
#include "comm.h"
#include "topo.h"

#ifndef NCCL_ALGO_NVLS
#define OLD_ALGORITHMS  // tree, ring and one kind of CollNet
#endif

static int vendor;

// What tuning.cc asks of the rest of NCCL.
const char* ncclFuncStr[] = {"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"};
const char* ncclAlgoStr[NCCL_NUM_ALGORITHMS];
const char* ncclProtoStr[NCCL_NUM_PROTOCOLS];
thread_local int ncclDebugNoWarn;
ncclResult_t ncclTopoGetNvsCount(ncclTopoSystem*, int* count) { *count = 1; return ncclSuccess; }
ncclResult_t ncclTopoCpuType(ncclTopoSystem*, int* arch, int* made, int* model) {
  *arch = NCCL_TOPO_CPU_ARCH_X86;
  *made = vendor;
  *model = 0;
  return ncclSuccess;
}
#if NCCL_VERSION_CODE >= 22900
int ncclDebugLevel = 0;
uint64_t ncclDebugMask = 0;
int64_t ncclLoadParam(char const*, int64_t value, int64_t, int64_t*, int8_t*) { return value; }
ncclResult_t ncclTopoGetMinNetBw(ncclTopoSystem*, float* rate) { *rate = 0; return ncclSuccess; }
#else
void ncclLoadParam(char const*, int64_t value, int64_t, int64_t* cache) { *cache = value; }
#endif
#if NCCL_VERSION_CODE >= 23000
void ncclDebugLogInternal(ncclDebugLogLevel, unsigned long, const char*, const char*, int, const char*, ...) {}
#endif
void ncclDebugLog(ncclDebugLogLevel, unsigned long, const char*, int, const char*, ...) {}
#if NCCL_VERSION_CODE >= 22000
const char* ncclGetEnv(const char*) { return nullptr; }
#endif

#ifdef SYMMETRIC
#include "sym_kernels.h"
#include "dev_runtime.h"
#include "transport.h"
static ncclTeam team(int ranks) {
  ncclTeam made = {};
  made.nRanks = ranks;
  return made;
}
extern "C" {
ncclTeam_t ncclTeamLsa(ncclComm_t comm) { return team(comm->nRanks / comm->nNodes); }
ncclTeam_t ncclTeamRail(ncclComm_t comm) { return team(comm->nNodes); }
int ncclLLA2ACalcSlots(int, int) { return 0; }
ncclResult_t ncclLLA2ACreateRequirement(int, int, ncclLLA2AHandle_t*, ncclDevResourceRequirements_t*) {
  return ncclSuccess;
}
ncclResult_t ncclGinOutboxCreateRequirement(int, int, ncclGinOutboxHandle*, ncclDevResourceRequirements*) {
  return ncclSuccess;
}
ncclResult_t ncclGinInboxA2ACreateRequirement(ncclTeam, int, int, ncclGinInboxA2AHandle*, ncclDevResourceRequirements*) {
  return ncclSuccess;
}
}
ncclResult_t ncclDevrInitOnce(ncclComm*) { return ncclSuccess; }
ncclResult_t ncclDevrCommCreateInternal(ncclComm*, ncclDevCommRequirements*, ncclDevComm*, bool, ncclDevCommCompat*) {
  return ncclSuccess;
}

// Print the choice for 32-bit floats in registered buffers; without NICs or a kernel, a name that no kernel has.
static void symmetric(ncclComm* comm, int call, size_t bytes, bool direct, bool adds, float nic) {
  comm->cudaArch = comm->minCompCap * 10;
  comm->nvlsSupport = adds;
  comm->config.minCTAs = 1;
  comm->config.maxCTAs = 64;
  comm->minNetBw = nic;
  comm->isAllDirectNvlink = direct;
  comm->nvlsResources = (ncclNvlsSharedRes*)calloc(1, sizeof(ncclNvlsSharedRes));
  comm->nvlsResources->nHeads = comm->nRanks / comm->nNodes;
  ncclSymkInitOnce(comm);
  size_t own = call == ncclFuncAllReduce ? bytes : (bytes + comm->nRanks - 1) / comm->nRanks;
  size_t elements = (own + 1023) / 1024 * 256;
  float time = -1;
  int sms = 0, warps;
  bool forced;
  ncclSymkKernelId kernel = ncclSymkKernelId_Count;
  if (nic > 0 && ncclSymkAvailable(comm, ncclFunc_t(call), ncclDevSum, ncclFloat, elements)) {
    ncclSymkPickKernel(comm, ncclFunc_t(call), ncclDevSum, ncclFloat, elements, elements, 1, ncclSymSendRegRecvReg,
                       &time, &kernel, &sms, &warps, &forced);
  }
  printf("%s %d %.9g", ncclSymkKernelIdToString(kernel), sms, time);
  free(comm->nvlsResources);
}
#endif

int main() {
  int ranks, nodes, capability, amd, nvlink, near, collnet, through_one, call;
  float net_us, nic;
  size_t bytes;
  while (scanf("%d %d %d %d %d %d %d %d %f %f %d %zu", &ranks, &nodes, &capability, &amd, &nvlink, &near, &collnet,
               &through_one, &net_us, &nic, &call, &bytes) == 12) {
    auto comm = (ncclComm*)calloc(1, sizeof(ncclComm));
    ncclTopoGraph found[7];
    ncclTopoGraph* graphs[7];
    memset((void*)found, 0, sizeof found);
    for (int a = 0; a < 7; a++) {
      ncclTopoGraph& graph = found[a];
      graphs[a] = &graph;
#ifdef OLD_ALGORITHMS
      if (scanf("%d %f %f", &graph.nChannels, &graph.speedIntra, &graph.speedInter) != 3) return 1;
#else
      if (scanf("%d %f %f", &graph.nChannels, &graph.bwIntra, &graph.bwInter) != 3) return 1;
      graph.latencyInter = net_us;
#endif
      graph.sameChannels = 1;
      graph.pattern = through_one ? NCCL_TOPO_PATTERN_TREE : NCCL_TOPO_PATTERN_BALANCED_TREE;
      graph.typeIntra = ranks == nodes ? PATH_LOC : nvlink ? PATH_NVL : PATH_PHB;
      graph.typeInter = nodes == 1 || near ? PATH_PIX : PATH_SYS;
    }
    vendor = amd ? NCCL_TOPO_CPU_VENDOR_AMD : NCCL_TOPO_CPU_VENDOR_INTEL;
    comm->rank = 1;
    comm->nRanks = ranks;
    comm->nNodes = nodes;
    comm->nChannels = 2 * found[NCCL_ALGO_RING].nChannels;
#if NCCL_VERSION_CODE < 22700
    comm->collNetSupport = collnet;
#endif
#if NCCL_VERSION_CODE >= 22000
    ncclCollNet_t plugin;
    memset((void*)&plugin, 0, sizeof plugin);
    plugin.iallgather = decltype(plugin.iallgather)(main);
    plugin.ireducescatter = decltype(plugin.ireducescatter)(main);
    comm->ncclCollNet = collnet ? &plugin : nullptr;
    comm->minCompCap = comm->maxCompCap = capability;
#if NCCL_VERSION_CODE < 22300
    comm->collNetHeadsUniqueNum = ranks;
#else
    comm->collNetHeadsNum = ranks;
    comm->netDeviceType = NCCL_NET_DEVICE_HOST;
    comm->cpuArch = NCCL_TOPO_CPU_ARCH_X86;
    comm->cpuVendor = vendor;
#endif
#endif
#if NCCL_VERSION_CODE >= 22700
    comm->config.collnetEnable = collnet;
    comm->maxTreePattern = found[0].pattern;
    comm->rankToNode = (int*)calloc(ranks, sizeof(int));
    comm->nodeRanks = (ncclNodeRanks*)calloc(nodes, sizeof(ncclNodeRanks));
    for (int rank = 0; rank < ranks; rank++) comm->nodeRanks[comm->rankToNode[rank] = rank * nodes / ranks].localRanks++;
#endif
#if NCCL_VERSION_CODE >= 22900
    ncclTopoInitTunerConstants(comm);
#endif
#if NCCL_VERSION_CODE >= 23000
    comm->collNetChainSupport = collnet;
#endif
#ifdef OLD_ALGORITHMS
    ncclTopoTuneModel(comm, capability, capability, graphs[0], graphs[1], graphs[2]);
#else
    ncclTopoTuneModel(comm, capability, capability, graphs);
#endif
    for (int a = 0; a < NCCL_NUM_ALGORITHMS; a++) {
      for (int p = 0; p < NCCL_NUM_PROTOCOLS; p++) {
        float time = -1;
#if NCCL_VERSION_CODE >= 22700
        ncclTopoGetAlgoTime(comm, call, a, p, bytes, 1, &time);
#elif NCCL_VERSION_CODE >= 22300
        bool backup;
        ncclTopoGetAlgoTime(comm, call, a, p, bytes, 1, &time, &backup);
        if (backup) time = -1;
#else
        ncclInfo info;
        memset((void*)&info, 0, sizeof info);
        info.comm = comm;
        info.coll = ncclFunc_t(call);
        info.nBytes = bytes;
        info.nChannels = comm->nChannels;
#ifdef OLD_ALGORITHMS
        ncclTopoGetAlgoTime(&info, a, p, 1, &time);
#else
        bool backup;
        ncclTopoGetAlgoTime(&info, a, p, 1, &time, &backup);
        if (backup) time = -1;
#endif
#endif
        printf("%.9g ", time);
      }
    }
#ifdef SYMMETRIC
    symmetric(comm, call, bytes, nvlink || ranks == nodes, found[NCCL_ALGO_NVLS].nChannels > 0, nic);
#endif
    printf("\n");
#if NCCL_VERSION_CODE >= 22700
    free(comm->rankToNode);
    free(comm->nodeRanks);
#endif
    free(comm);
  }
}
