# What `cmake --install` puts where: the library, its headers and its CMake package. The program
# installs itself in cli/.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/chunkscan)

install(TARGETS chunkscan EXPORT chunkscanTargets)
install(DIRECTORY include/chunkscan DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT chunkscanTargets NAMESPACE chunkscan:: DESTINATION ${package_dir})

configure_package_config_file(cmake/chunkscanConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/chunkscanConfig.cmake
  INSTALL_DESTINATION ${package_dir})
configure_file(cmake/chunkscan.pc.in ${CMAKE_CURRENT_BINARY_DIR}/chunkscan.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/chunkscan.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/chunkscanConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_CURRENT_BINARY_DIR}/chunkscanConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/chunkscanConfigVersion.cmake
  DESTINATION ${package_dir})
